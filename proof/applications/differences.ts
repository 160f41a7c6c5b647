/** One fact of a request that is not the same behind a sample and behind our entry. */
export interface Differing {
  readonly request: string;
  readonly fact: string;
  readonly nginx: string | undefined;
  readonly portico: string | undefined;
}

/** Why a fact differs. `wrong` says that the sample is. */
interface Named {
  /** Beginnings of the titles of samples. */
  readonly samples: readonly string[];
  readonly why: string;
  readonly wrong?: true;
  readonly explains: (difference: Differing) => boolean;
}

const SEAFILE = ["Seafile"];
const ADVANCED_TLS = ["12", "13", "14"].map((version) => `Seafile ${version} on a host, advanced TLS`);
const HOST_LAYOUT = ["Seafile 11 on a host", ...ADVANCED_TLS];
const CONTAINERS = ["12", "13", "14"].map((version) => `Seafile ${version} in containers`);
const SINCE_13 = CONTAINERS.slice(1);

/** A fact that only our entry has, below these paths. */
const missing =
  (fact: string, ...below: readonly string[]) =>
  (one: Differing): boolean =>
    one.fact === fact && one.nginx === undefined && one.portico !== undefined && isBelow(one, below);
const isBelow = ({ request }: Differing, paths: readonly string[]): boolean =>
  paths.some((path) => request.split(" ")[1]!.startsWith(path));

/** The sample leads to another path, or nowhere, and nothing that a server sees can be compared. */
const lost =
  (...below: readonly string[]) =>
  (one: Differing): boolean =>
    isBelow(one, below) && ["status", "server", "target", "host"].includes(one.fact);

const targets = (change: (target: string) => string) => (one: Differing) =>
  one.fact === "target" && one.portico !== undefined && one.nginx === change(one.portico);
const decoded = (target: string): string => {
  const [path = "", ...query] = target.split("?");
  return [path.replaceAll("%2F", "/"), ...query].join("?");
};

export const DIFFERENCES = {
  slashDecoded: {
    samples: SEAFILE,
    why: "a location with a path in `proxy_pass` gives the server a path that was decoded: `%2F` in a name becomes a slash",
    wrong: true,
    explains: targets((target) => decoded(target).replace(/\?$/, "")),
  },
  emptyQuery: {
    samples: SEAFILE,
    why: "the same, and a rewrite, lose a `?` with nothing behind it, which means the same to every server",
    explains: targets((target) => target.replace(/\?$/, "")),
  },
  fileServerPath: {
    samples: ADVANCED_TLS,
    why: "the pattern of the block for TLS is `^/seafhttp(.*)$1`, which matches nothing: the file server gets paths that it does not know",
    wrong: true,
    explains: (one) => lost("/seafhttp/")(one) && one.fact !== "host",
  },
  notificationPath: {
    samples: SINCE_13,
    why: "`/notification` is not cut off, and the notification server knows `/`, `/events` and `/ping` only",
    wrong: true,
    explains: (one) => isBelow(one, ["/notification"]),
  },
  thumbnailPing: {
    samples: SINCE_13,
    why: "`/thumbnail/ping` is not made `/ping`, as the labels for Caddy do",
    wrong: true,
    explains: (one) => one.request === "GET /thumbnail/ping" && one.fact === "target",
  },
  hostOfServer: {
    samples: SEAFILE,
    why: "the server gets its own address as `Host`; ours keeps that of the client everywhere",
    explains: ({ fact, nginx }) => fact === "host" && nginx?.startsWith("127.0.0.1:") === true,
  },
  forwardedHost: {
    samples: SEAFILE,
    why: "`X-Forwarded-Host` is the server name without the port, and `Host` already says both",
    explains: ({ fact, portico }) => fact === "x-forwarded-host" && portico === undefined,
  },
  schemeUnknown: {
    samples: [...HOST_LAYOUT, ...CONTAINERS, "Nextcloud"],
    why: "servers are not told that clients use https",
    wrong: true,
    explains: missing("x-forwarded-proto", "/"),
  },
  clientUnknown: {
    samples: [...HOST_LAYOUT, "Seafile 12 in containers", "Nextcloud"],
    why: "some servers are not told the client's address",
    explains: missing("x-forwarded-for", "/:dir_browser", "/notification", "/hosting", "/browser", "/cool"),
  },
  realIp: {
    samples: [...HOST_LAYOUT, ...CONTAINERS, "Nextcloud"],
    why: "the same for `X-Real-IP`",
    explains: missing("x-real-ip", "/"),
  },
  davSlash: {
    samples: ["Nextcloud"],
    why: "the redirect leads to `/remote.php/dav`, ours to the collection with its slash",
    explains: ({ fact, nginx, portico }) => fact === "location" && `${nginx}/` === portico,
  },
} satisfies Readonly<Record<string, Named>>;
