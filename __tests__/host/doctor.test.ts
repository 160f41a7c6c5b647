import type { DiagnosisRow } from "../../src/diagnosis/verdict.js";
import { FileSyncHost } from "./fileSyncHost.js";
import { Namespace } from "./harness/index.js";

/** `portico doctor` on a real host that is broken in one way after the other. */

let site: FileSyncHost;
beforeAll(async () => {
  site = await FileSyncHost.boot("doctor");
}, 240_000);
afterAll(() => site?.remove());

const DOCTOR = "/usr/lib/portico/node /usr/lib/portico/portico.mjs doctor --timeout 3";

interface Diagnosis {
  readonly code: number;
  readonly rows: readonly DiagnosisRow[];
}

async function diagnosis(options = ""): Promise<Diagnosis> {
  const { code, stdout, stderr } = await site.host.run(`${DOCTOR} --json ${options}`);
  if (stderr !== "") throw new Error(stderr);
  return { code, rows: (JSON.parse(stdout) as { rows: DiagnosisRow[] }).rows };
}

const failed = ({ rows }: Diagnosis): string[] =>
  rows.flatMap(({ id, status }) => (status === "failed" ? [id] : []));

const restart = (unit: string): string => `systemctl daemon-reload; systemctl restart ${unit}; sleep 1`;
/** Replaces text in a file; the copy goes back over it later. */
const edit = (file: string, script: string): string =>
  `cp -p ${file} /root/before && sed -i '${script}' ${file}`;
const undo = (file: string): string => `cp -p /root/before ${file}`;
const CONFIG = "/etc/portico/portico.json";
const reload = "systemctl reload portico";
const dropIn = (unit: string, text: string): string =>
  `mkdir -p /etc/systemd/system/${unit}.service.d && printf '[Service]\\n${text}\\n' > /etc/systemd/system/${unit}.service.d/broken.conf; ${restart(unit)}`;
const noDropIn = (unit: string): string => `rm -r /etc/systemd/system/${unit}.service.d; ${restart(unit)}`;
const command = (variant: string, role: string, address: string, port: number): string =>
  `ExecStart=\\nExecStart=/usr/lib/portico/node /opt/daemons.mjs ${variant} ${role} ${address} ${port}`;

/** How the host is broken, which row tells, words of its cause, and how it is mended. */
const BREAKAGES: readonly {
  row: string;
  name: string;
  breakIt: string;
  cause: RegExp;
  seen: RegExp;
  mend: string;
}[] = [
  {
    row: "config",
    name: "a config that is no JSON",
    breakIt: edit(CONFIG, 's/"version": 1,/"version": 1,,/'),
    cause: /cannot be read/,
    seen: /JSON/,
    mend: undo(CONFIG),
  },
  {
    row: "proxy",
    name: "a proxy that does not run",
    breakIt: "systemctl stop portico.socket portico.service",
    cause: /does not run/,
    seen: /portico\.socket: inactive/,
    mend: "systemctl start portico.socket portico.service",
  },
  {
    row: "ports",
    name: "a daemon that listens for everyone",
    breakIt: dropIn("sync-web", command("start", "web", "0.0.0.0", 8000)),
    cause: /port 8000 is to be reachable on localhost only/,
    seen: /8000/,
    mend: noDropIn("sync-web"),
  },
  {
    row: "server-name",
    name: "another server name in the config",
    breakIt: `${edit(CONFIG, 's/"203.0.113.10"/"other.example.org"/')} && ${reload}`,
    cause: /server name in the proxy config is not the host address or domain used/,
    seen: /other\.example\.org/,
    mend: `${undo(CONFIG)} && ${reload}`,
  },
  {
    row: "server-name",
    name: "media that lie elsewhere",
    breakIt: `${edit("/etc/portico/deployment.json", 's/"version":1,/"version":1,"probe":{"mediaPath":"icons\\/logo.png"},/')} && mv /srv/sync/media/icons /srv/sync/icons`,
    cause: /media path in the config does not match the installation/,
    seen: /404/,
    mend: `${undo("/etc/portico/deployment.json")} && mv /srv/sync/icons /srv/sync/media/icons`,
  },
  {
    row: "media-permissions",
    name: "a media directory that others may not enter",
    breakIt: "chmod o-rx /srv/sync/media/icons",
    cause: /lacks the permissions of section 2.3/,
    seen: /\/srv\/sync\/media\/icons/,
    mend: "chmod o+rx /srv/sync/media/icons",
  },
  {
    row: "avatar",
    name: "an avatar that others may not read",
    breakIt: "chmod o-r /srv/sync/media/avatars/default.png",
    cause: /avatar path is not world readable/,
    seen: /avatars\/default\.png/,
    mend: "chmod o+r /srv/sync/media/avatars/default.png",
  },
  {
    row: "web-application",
    name: "a web application that does not run",
    breakIt: "systemctl stop sync-web",
    cause: /do not work together/,
    seen: /502/,
    mend: `${restart("sync-web")}`,
  },
  {
    row: "web-application",
    name: "the fastcgi start variant",
    breakIt: dropIn("sync-web", command("start-fastcgi", "web", "127.0.0.1", 8000)),
    cause: /fastcgi start variant is used/,
    seen: /start-fastcgi/,
    mend: noDropIn("sync-web"),
  },
  {
    row: "public-urls",
    name: "a wrong SERVICE_URL",
    breakIt: edit("/srv/sync/conf/network.conf", "s/https:/http:/"),
    cause: /SERVICE_URL or FILE_SERVER_ROOT is wrong/,
    seen: /http:\/\/203/,
    mend: undo("/srv/sync/conf/network.conf"),
  },
  {
    row: "settings",
    name: "a setting that does not fit the routes",
    breakIt: edit("/srv/sync/conf/settings.py", 's/^SITE_ROOT.*/SITE_ROOT = "\\/"/'),
    cause: /not as deployed/,
    seen: /SITE_ROOT/,
    mend: undo("/srv/sync/conf/settings.py"),
  },
  {
    row: "response: default server",
    name: "a default page that is missing",
    breakIt: "mv /usr/share/portico/default/index.html /root/",
    cause: /default virtual server answers, but its page is missing/,
    seen: /40[34]/,
    mend: "mv /root/index.html /usr/share/portico/default/",
  },
  {
    row: "response: redirect to https",
    name: "a redirect that leads elsewhere",
    breakIt: `${edit(CONFIG, 's/"type": "redirect"/"type": "redirect", "host": "other.example.org"/')} && ${reload}`,
    cause: /redirect names another host/,
    seen: /other\.example\.org/,
    mend: `${undo(CONFIG)} && ${reload}`,
  },
  {
    row: "response: application over https",
    name: "a web application that redirects to another host",
    breakIt: dropIn("sync-web", "Environment=WRONG_HOST=other.example.org"),
    cause: /SERVICE_URL or FILE_SERVER_ROOT is wrong, or the web application is not told/,
    seen: /other\.example\.org/,
    mend: noDropIn("sync-web"),
  },
  {
    row: "response: media file",
    name: "a media file that is no image",
    breakIt: `${edit("/etc/portico/deployment.json", 's/"version":1,/"version":1,"probe":{"mediaPath":"icons\\/note.txt"},/')} && echo note > /srv/sync/media/icons/note.txt`,
    cause: /something other than the media route answered/,
    seen: /text\/plain/,
    mend: `${undo("/etc/portico/deployment.json")} && rm /srv/sync/media/icons/note.txt`,
  },
  {
    row: "response: application's Server field",
    name: "an application's server that tells its version",
    breakIt: `${edit(CONFIG, 's/"name": "application",/"name": "application", "versionTokens": true,/')} && ${reload}`,
    cause: /default virtual server answered/,
    seen: /portico\/\d/,
    mend: `${undo(CONFIG)} && ${reload}`,
  },
  {
    row: "response: file server daemon",
    name: "a file server that does not run",
    breakIt: "systemctl stop sync-fileServer",
    cause: /upload or view fails/,
    seen: /502/,
    mend: restart("sync-fileServer"),
  },
  {
    row: "response: WebDAV daemon",
    name: "a WebDAV daemon that does not run",
    breakIt: "systemctl stop sync-webdav",
    cause: /WebDAV daemon does not answer/,
    seen: /502/,
    mend: restart("sync-webdav"),
  },
];

test("a host in order has no row that fails", async () => {
  const all = await diagnosis();
  expect(failed(all)).toEqual([]);
  expect(all.code).toBe(0);
  const { stdout } = await site.host.run(DOCTOR);
  expect(stdout).toMatch(/ 0 failed/);
});

test.each(BREAKAGES)(
  "$name: row $row, and no other",
  async ({ row, breakIt, cause, seen, mend }) => {
    await site.host.must(breakIt);
    // What the proxy knows of a file it believes for a second.
    await site.host.must("sleep 1.1");
    try {
      const broken = await diagnosis();
      // A front end on both families has some rows twice.
      const ids = new Set(failed(broken).map((id) => id.replace(" on IPv6", "")));
      expect({ failed: [...ids], code: broken.code }).toEqual({ failed: [row], code: 1 });
      const { cause: told, evidence, fix } = broken.rows.find(({ id }) => id === row)!;
      expect(told).toMatch(cause);
      expect(evidence.join("\n")).toMatch(seen);
      expect(fix).toBeTruthy();
    } finally {
      await site.host.must(mend);
    }
  },
  60_000,
);

test("nothing was left broken, and the secret key was never shown", async () => {
  expect(failed(await diagnosis())).toEqual([]);
  const { stdout } = await site.host.run(`${DOCTOR} --json; ${DOCTOR}`);
  expect(stdout).not.toContain("not to be shown");
});

test("a router without NAT loopback: works from outside, not from inside", async () => {
  const PUBLIC = "198.51.100.7";
  const router = await site.host.outside();
  const internet = await Namespace.create();
  try {
    await router.connect(
      internet,
      { name: "wan", addresses: [`${PUBLIC}/24`] },
      { name: "eth0", addresses: ["198.51.100.1/24"] },
    );
    // What crosses the bridge is no business of its packet filter, where this kernel has one.
    await router.must("sysctl -qw net.ipv4.ip_forward=1; sysctl -qew net.bridge.bridge-nf-call-iptables=0");
    const forward = (more: string): string => `nft -f - <<'EOF'
table ip nat {
  chain in { type nat hook prerouting priority dstnat; ${more}ip daddr ${PUBLIC} tcp dport { 80, 443 } dnat to ${site.host.address}
  }
  chain out { type nat hook postrouting priority srcnat; ip saddr 203.0.113.0/24 ip daddr ${site.host.address} masquerade; oifname "wan" masquerade
  }
}
EOF`;
    await router.must(forward('iifname "wan" '));
    const fromOutside = await internet.run(`curl -sk -o /dev/null -w '%{http_code}' https://${PUBLIC}/sync/`);
    expect(fromOutside.stdout).toBe("302");
    const without = await diagnosis(`--public-address ${PUBLIC}`);
    expect(failed(without)).toEqual(["hairpin"]);
    const row = without.rows.find(({ id }) => id === "hairpin")!;
    expect(row.cause).toBe("the router lacks NAT loopback (hairpinning)");
    await router.must(`nft delete table ip nat && ${forward("")}`);
    const mended = await diagnosis(`--public-address ${PUBLIC}`);
    expect(mended.rows.find(({ id }) => id === "hairpin")).toMatchObject({ status: "ok" });
    expect(failed(mended)).toEqual([]);
  } finally {
    await router.run("nft delete table ip nat");
    internet.remove();
  }
}, 60_000);

test("from another machine the network is judged, and the rest is said not to be seen", async () => {
  const outside = await site.host.outside();
  const files = await site.copyDocuments();
  const doctor = (more = ""): string =>
    `${process.execPath} ${files.runtime} doctor --json --elsewhere --timeout 3 --config ${files.config} --deployment ${files.deployment} ${more}`;
  const ask = async (): Promise<Diagnosis> => {
    const { code, stdout } = await outside.run(doctor());
    return { code, rows: (JSON.parse(stdout) as { rows: DiagnosisRow[] }).rows };
  };
  const inOrder = await ask();
  expect(failed(inOrder)).toEqual([]);
  const unseen = inOrder.rows.flatMap(({ id, status }) => (status === "unknown" ? [id] : []));
  expect(unseen).toEqual(expect.arrayContaining(["config", "proxy", "avatar", "public-urls"]));
  await site.host.must("systemctl stop portico.socket portico.service");
  try {
    expect(failed(await ask())).toEqual(["ports"]);
  } finally {
    await site.host.must("systemctl start portico.socket portico.service");
  }
}, 60_000);
