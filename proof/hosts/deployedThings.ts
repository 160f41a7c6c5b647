/**
 * What a front end consists of on a host, and every way in which a thing of that kind may break. `breakagesDrawn.test.ts`
 * breaks them on a real host, and docs/breakages.md has the figures' subjects: both use only what is in this file.
 */

const UNITS = "/etc/systemd/system";

/** Files that the deployment of `fileSyncHost.ts` delivers; the test compares them with those of its host. */
export const FILES = [
  "/etc/logrotate.d/portico",
  "/etc/portico/deployment.json",
  "/etc/portico/firewall.nft",
  "/etc/portico/portico.json",
  "/etc/portico/tls/cacert.pem",
  "/etc/portico/tls/dhparam2048.pem",
  "/etc/portico/tls/privkey.pem",
  `${UNITS}/nftables.service.d/portico.conf`,
  `${UNITS}/portico-doctor.service`,
  `${UNITS}/portico-doctor.timer`,
  `${UNITS}/portico-firewall.service`,
  `${UNITS}/portico.service`,
  `${UNITS}/portico.socket`,
  "/usr/lib/portico/portico.mjs",
  "/usr/lib/portico/portico.schema.json",
  "/usr/share/portico/application-settings/file-server.conf",
  "/usr/share/portico/application-settings/network-daemon.conf",
  "/usr/share/portico/application-settings/web-application-settings.py",
  "/usr/share/portico/default/index.html",
] as const;

/** Directories that these files are in, that Portico keeps, or that the proxy serves. */
const DIRECTORIES = [
  "/etc/portico",
  "/etc/portico/tls",
  "/usr/lib/portico",
  "/usr/share/portico",
  "/usr/share/portico/application-settings",
  "/usr/share/portico/default",
  "/var/lib/portico/deployment",
  "/srv/sync/media",
] as const;

const SERVICES = [
  "portico.service",
  "sync-web.service",
  "sync-fileServer.service",
  "sync-webdav.service",
] as const;
const OTHER_UNITS = [
  "portico.socket",
  "portico-firewall.service",
  "portico-doctor.timer",
  "logrotate.timer",
] as const;

/** Programs of the host that the deployment needs. */
const PROGRAMS = ["/usr/lib/portico/node", "/usr/sbin/nft", "/usr/sbin/logrotate"] as const;

/** TCP ports, with the unit that listens there. */
const PORTS = [
  [80, "portico.socket portico.service", "0.0.0.0"],
  [443, "portico.socket portico.service", "0.0.0.0"],
  [8000, "sync-web.service", "127.0.0.1"],
  [8082, "sync-fileServer.service", "127.0.0.1"],
  [8080, "sync-webdav.service", "127.0.0.1"],
] as const;

/** One thing that is broken in one way. */
export interface ThingBroken {
  readonly thing: string;
  readonly kind: string;
  /** What is done: shell on the host, as root. */
  readonly breaks: string;
  /** What undoes it, if the test has not healed the host. */
  readonly undo: string;
  /** What the first row that fails has to name; the thing, or what is known by another name. */
  readonly named: string;
}

const KEPT = "/root/kept";

function file(path: string): ThingBroken[] {
  const keep = `rm -rf ${KEPT}; cp -a ${path} ${KEPT}`;
  const undo = `rm -rf ${path}; cp -a ${KEPT} ${path}`;
  const broken = (kind: string, command: string): ThingBroken => ({
    ...{ thing: path, kind, undo, named: path },
    breaks: `${keep}; ${command}`,
  });
  return [
    broken("absent", `rm ${path}`),
    broken("empty", `: > ${path}`),
    broken("foreign", `chown 65534:65534 ${path}`),
    broken("unreadable", `chmod 000 ${path}`),
    broken("replaced", `rm ${path}; mkdir ${path}`),
    broken("looped", `rm ${path}; ln -s ${path} ${path}`),
  ];
}

function directory(path: string): ThingBroken[] {
  const stat = `stat -c 'chown %u:%g %n; chmod %a %n' ${path} > ${KEPT}.sh`;
  const broken = (kind: string, command: string, undo = `sh ${KEPT}.sh`): ThingBroken => ({
    ...{ thing: path, kind, undo, named: path },
    breaks: `${stat}; ${command}`,
  });
  const back = `rm -rf ${path}; mv ${KEPT} ${path}`;
  return [
    broken("absent", `rm -rf ${KEPT}; mv ${path} ${KEPT}`, back),
    broken("empty", `rm -rf ${KEPT}; mv ${path} ${KEPT}; mkdir ${path}; sh ${KEPT}.sh`, back),
    broken("foreign", `chown 65534 ${path}`),
    broken("unreadable", `chmod 700 ${path}; sleep 1.1`),
    broken("replaced", `rm -rf ${KEPT}; mv ${path} ${KEPT}; echo > ${path}`, back),
    broken("looped", `rm -rf ${KEPT}; mv ${path} ${KEPT}; ln -s ${path} ${path}`, back),
  ];
}

function unit(name: string, hasProcesses: boolean): ThingBroken[] {
  const broken = (kind: string, breaks: string): ThingBroken => ({
    ...{ thing: name, kind, breaks, named: name },
    undo: `systemctl kill --signal=SIGCONT ${name} 2> /dev/null; systemctl thaw ${name} 2> /dev/null; systemctl enable --now ${name}; systemctl start ${name}`,
  });
  return [
    broken("stopped", `systemctl stop ${name}`),
    broken("disabled", `systemctl disable ${name} 2>&1`),
    ...(hasProcesses
      ? [
          broken("frozen", `kill -STOP $(systemctl show -P MainPID ${name})`),
          broken("halted", `systemctl freeze ${name}`),
        ]
      : []),
  ];
}

function program(path: string): ThingBroken[] {
  return (
    file(path)
      .filter(({ kind }) => kind !== "foreign")
      .map((one) =>
        one.kind === "empty" ? { ...one, breaks: `rm -rf ${KEPT}; mv ${path} ${KEPT}; : > ${path}` } : one,
      )
      // A program that runs cannot be written to.
      .map((one) => ({ ...one, undo: `rm -rf ${path}; mv ${KEPT} ${path}` }))
  );
}

function port(number: number, units: string, address: string): ThingBroken {
  const listens = `require("net").createServer((s) => s.end("thief")).listen(${number}, "${address}")`;
  return {
    ...{ thing: `port ${number}`, kind: "foreign", named: number < 1024 ? `:${number}` : units },
    breaks: `systemctl stop ${units}; systemd-run --unit=thief --quiet /usr/lib/portico/node -e '${listens}'; sleep 1`,
    undo: `systemctl stop thief; systemctl reset-failed; systemctl start ${units}`,
  };
}

/** Every case, in an order that does not change. */
export const THINGS_BROKEN: readonly ThingBroken[] = [
  ...FILES.flatMap(file),
  ...DIRECTORIES.flatMap(directory),
  ...SERVICES.flatMap((name) => unit(name, true)),
  ...OTHER_UNITS.flatMap((name) => unit(name, false)),
  ...PROGRAMS.flatMap(program),
  ...PORTS.map(([number, units, address]) => port(number, units, address)),
];

export const caseOf = ({ thing, kind }: ThingBroken): string => `${thing}: ${kind}`;

/** What `portico doctor` has no answer to, or what breaks nothing, with the reason. */
export const NOT_KNOWN: Readonly<Record<string, string>> = {
  "/etc/portico/tls: unreadable": "systemd reads these files as root",
  "/usr/share/portico/application-settings: unreadable": "only people read these files",
  "/var/lib/portico/deployment: unreadable": "it is to be read by root only",
  "/srv/sync/media: foreign": "any user may own what is served",
};

/** What a person has to do before the printed fixes, if any are left, heal the host. */
export interface ByHand {
  readonly reason: string;
  /** What a person does, in words. */
  readonly remedy: string;
  /** The same as shell, as root. */
  readonly does: string;
}

const LOST_KINDS = ["absent", "empty", "replaced", "looped"] as const;

const lost = (path: string, hand: ByHand): [string, ByHand][] =>
  LOST_KINDS.map((kind) => `${path}: ${kind}`)
    .filter((name) => THINGS_BROKEN.some((one) => caseOf(one) === name))
    .map((name) => [name, hand]);

/** Faults that no command of Portico repairs: what is lost is not part of the deployment. */
export const BY_HAND: Readonly<Record<string, ByHand>> = Object.fromEntries([
  ...PROGRAMS.flatMap((path) =>
    lost(path, {
      reason: "the program is not part of this deployment",
      remedy: "install the program again",
      does: `rm -rf ${path}; mv ${KEPT} ${path}`,
    }),
  ),
  ...lost("/usr/lib/portico", {
    reason: "Node, which is in the directory, is not part of this deployment",
    remedy: "install Node again, then what `portico doctor` prints",
    does: "rm -rf /usr/lib/portico; install -D -m 0755 /root/node /usr/lib/portico/node",
  }).filter(([name]) => !/: (?:absent|empty)$/.test(name)),
  ...lost("/srv/sync/media", {
    reason: "the files are the application's",
    remedy: "mount the disk, or put the files back",
    does: `rm -rf /srv/sync/media; mv ${KEPT} /srv/sync/media; sleep 1.1`,
  }),
]);
