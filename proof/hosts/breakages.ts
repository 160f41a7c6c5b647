/**
 * Ways to break a host that runs a front end, an apply or a destroy. `brokenHost.ts` does each of them on a real host,
 * one after the other, and docs/breakages.md lists them: both use only what is in this file.
 */

/** Requests of clients outside, and the response that counts as served. */
export const SERVICES = {
  "default page": { url: "http://ADDRESS/", host: "unknown.invalid", status: 200 },
  redirect: { url: "http://ADDRESS/sync/", status: 301 },
  web: { url: "https://ADDRESS/sync/", status: 302 },
  media: { url: "https://ADDRESS/syncmedia/icons/logo.png", status: 200 },
  files: { url: "https://ADDRESS/synchttp/", status: 200 },
  webdav: { url: "https://ADDRESS/syncdav/", status: 401 },
} as const;
export type Service = keyof typeof SERVICES;
const HTTPS: readonly Service[] = ["web", "media", "files", "webdav"];
const ALL = Object.keys(SERVICES) as Service[];

/** A text that is looked for; `…` in it stands for any other. */
export type Said = string;

export const patternOf = (said: Said): RegExp =>
  new RegExp(
    said
      .split(/ ?… ?/)
      .map((text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"))
      .join("[^]*"),
  );

export interface Breakage {
  /** What is done, in words. */
  readonly name: string;
  /** What is done: shell on the host, as root. */
  readonly breaks: string;
  /** The `portico activate` or `deactivate` that is then run, and the message with which it refuses. */
  readonly tries?: { readonly command: string; readonly message: Said };
  /** Rows of `portico doctor` that fail, the one that names it first; none if nothing is left to report. */
  readonly rows: readonly string[];
  /** What the first of them says: its cause, what was seen, its fix. */
  readonly message?: Said;
  /** Rows that cannot know their answer then. */
  readonly unknown?: readonly string[];
  /** What is not served until it is fixed. */
  readonly down?: readonly Service[];
  /**
   * What fixes it: `itself`, the host without help; `again`, `portico activate --again`; or a command, followed by
   * `portico activate --again` with `thenAgain`.
   */
  readonly heals: string;
  readonly thenAgain?: true;
  /** What an administrator does, in words, where `heals` undoes what only a test does. */
  readonly remedy?: string;
}

const PORTICO = "/usr/lib/portico/node /usr/lib/portico/portico.mjs";
const STORE = "/var/lib/portico/deployment";
const CONFIG = "/etc/portico/portico.json";
const TLS = "/etc/portico/tls";
const UNITS = "/etc/systemd/system";
const LOGS = "/var/log/private/portico";
const PAGE = "/usr/share/portico/default/index.html";
const RULES = "/etc/portico/firewall.nft";
const NETWORK_CONF = "/srv/sync/conf/network.conf";
const WEB_SETTINGS = "/srv/sync/conf/settings.py";
const FILE_SERVER_CONF = "/srv/sync/conf/fileserver.conf";
const reload = "systemctl reload portico";
const reopen = "systemctl kill --kill-who=main --signal=SIGUSR1 portico";

const sed = (file: string, script: string): string => `sed -i '${script}' ${file}`;
const restart = (unit: string): string => `systemctl daemon-reload; systemctl restart ${unit}; sleep 0.7`;
const dropIn = (unit: string, text: string): string =>
  `mkdir -p ${UNITS}/${unit}.service.d && printf '[Service]\\n${text}\\n' > ${UNITS}/${unit}.service.d/broken.conf; ${restart(unit)}`;
const noDropIn = (unit: string): string =>
  `rm -r ${UNITS}/${unit}.service.d; systemctl reset-failed ${unit}; ${restart(unit)}`;
const daemon = (variant: string, role: string, address: string, port: number): string =>
  `ExecStart=\\nExecStart=/usr/lib/portico/node /opt/daemons.mjs ${variant} ${role} ${address} ${port}`;
/** Another certificate; `mine` for the existing key. */
const certificate = (days: number, mine: boolean): string =>
  `openssl req -x509 -subj /CN=other -days ${days} -out ${TLS}/cacert.pem ${
    mine ? `-key ${TLS}/privkey.pem` : `-newkey rsa:2048 -nodes -keyout ${TLS}/privkey.pem`
  } 2> /dev/null`;
const incoming = "rm -rf /root/upload && mkdir /root/upload && cp /etc/portico/deployment.json /root/upload/";
const upload = `${PORTICO} activate --incoming /root/upload`;

const FILES: readonly Breakage[] = [
  {
    name: "every user can read the private key",
    breaks: `chmod 644 ${TLS}/privkey.pem`,
    rows: ["files", "tls"],
    message: "privkey.pem: has mode 0644 instead of 0600",
    heals: "again",
  },
  {
    name: "the proxy's config is edited, but not loaded",
    breaks: sed(CONFIG, 's/"version": 1,/"version": 1, "timeouts": {"keepAliveMs": 4321},/'),
    rows: ["files", "running"],
    message: "portico.json: has different content",
    heals: "again",
  },
  {
    name: "an edit of the config is loaded, and undone without a reload",
    breaks: `cp -p ${CONFIG} /root/before && ${sed(CONFIG, 's/"version": 1,/"version": 1, "timeouts": {"keepAliveMs": 4321},/')} && ${reload} && cp -p /root/before ${CONFIG}`,
    rows: ["running"],
    message: "config: was changed since it was loaded",
    heals: "again",
  },
  {
    name: "the proxy's config is not JSON",
    breaks: sed(CONFIG, 's/"version": 1,/"version": 1,,/'),
    rows: ["config", "files"],
    message: "cannot be read … /etc/portico/portico.json: is not JSON",
    heals: "again",
  },
  {
    name: "the proxy's config is a link to another file",
    breaks: `mv ${CONFIG} /root/elsewhere.json && ln -s /root/elsewhere.json ${CONFIG}`,
    rows: ["files"],
    message: "portico.json: is a link to /root/elsewhere.json",
    heals: "again",
  },
  {
    name: "the config contains another server name",
    breaks: `${sed(CONFIG, 's/"203.0.113.10"/"other.example.org"/')} && ${reload}`,
    rows: ["server-name", "files", "tls"],
    message: "server name in the proxy config is not the host address or domain used … other.example.org",
    down: ["redirect"],
    heals: "again",
  },
  {
    name: "the application's server shows its version",
    breaks: `${sed(CONFIG, 's/"name": "application",/"name": "application", "versionTokens": true,/')} && ${reload}`,
    rows: ["response: application's Server field", "files"],
    message: "default virtual server responded … portico/…",
    heals: "again",
  },
  {
    name: "a listener for an address that the host lacks",
    breaks: sed(CONFIG, 's/"address": "0.0.0.0"/"address": "203.0.113.77"/'),
    rows: ["addresses", "files", "running"],
    message: "203.0.113.77: no interface has it",
    heals: "again",
  },
  {
    name: "another certificate and key are installed and loaded",
    breaks: `${certificate(365, false)} && ${reload}`,
    rows: ["tls", "files"],
    message: "does not cover 203.0.113.10",
    heals: "again",
  },
  {
    name: "a key that does not belong to the certificate",
    breaks: `openssl genrsa -out ${TLS}/privkey.pem 2048 2> /dev/null`,
    rows: ["config", "files"],
    message: "does not belong to the certificate",
    heals: "again",
  },
  {
    name: "the runtime is changed",
    breaks: "echo '// changed' >> /usr/lib/portico/portico.mjs",
    rows: ["files", "running"],
    message: "portico.mjs: has different content",
    heals: "again",
  },
  {
    name: "the default page is replaced by a directory",
    breaks: `rm ${PAGE} && mkdir ${PAGE}`,
    rows: ["files", "response: default server"],
    message: "index.html: is not a regular file … Move … away",
    down: ["default page"],
    heals: `rmdir ${PAGE}`,
    thenAgain: true,
  },
  {
    name: "every user may write to the directory of the config",
    breaks: "chmod 777 /etc/portico",
    rows: ["files", "config"],
    message: "/etc/portico: users other than root may write to it",
    heals: "chmod go-w /etc/portico",
  },
  {
    name: "only root may enter the directory of the config",
    breaks: "chmod 700 /etc/portico",
    rows: ["files"],
    message: "/etc/portico: the proxy's user cannot enter it (mode 0700): the proxy does not start again",
    heals: "again",
  },
  {
    name: "only root may enter the directory of the programs, and the proxy restarts",
    breaks: "chmod 700 /usr/lib/portico; systemctl restart portico 2>&1; true",
    rows: ["files", "proxy"],
    message: "/usr/lib/portico: the proxy's user cannot enter it (mode 0700): the proxy does not start again",
    down: ALL,
    heals: "again",
  },
  {
    name: "only root may enter a directory of the distribution",
    breaks: "chmod 700 /usr/lib",
    rows: ["files"],
    message: "/usr/lib: the proxy's user cannot enter it … chmod o+x /usr/lib",
    heals: "chmod 755 /usr/lib",
    remedy: "`chmod o+x /usr/lib`",
  },
  {
    name: "a directory above the default page is given to another user",
    breaks: "chown 65534 /usr/share",
    rows: ["files"],
    message:
      "index.html: is below a directory of user 65534 … namei -om /usr/share/portico/default/index.html",
    heals: "chown 0 /usr/share",
  },
  {
    name: "the deployment document is edited",
    breaks: sed("/etc/portico/deployment.json", 's/"version": 1/"name": "other", "version": 1/'),
    rows: ["files"],
    message: "deployment.json: has different content",
    heals: "again",
  },
];

const SYSTEM: readonly Breakage[] = [
  {
    name: "the proxy's unit is edited, without a reload of systemd",
    breaks: `sleep 1; echo '# edited' >> ${UNITS}/portico.service`,
    rows: ["files", "units"],
    message: "portico.service: has different content",
    heals: "again",
  },
  {
    name: "an edit of the unit runs, and is undone without a reload of systemd",
    breaks: `cp -p ${UNITS}/portico.service /root/before && sed -i 's/^LimitNOFILE=.*/LimitNOFILE=1024/' ${UNITS}/portico.service && systemctl daemon-reload && systemctl restart portico && cp -p /root/before ${UNITS}/portico.service && touch ${UNITS}/portico.service`,
    rows: ["units"],
    message: "portico.service: its files have changed since systemd read them",
    heals: "again",
  },
  {
    name: "a drop-in that is not part of the deployment",
    breaks: dropIn("portico", "LimitNOFILE=1024"),
    rows: ["units"],
    message: "portico.service.d/broken.conf adds to the unit",
    heals: `rm -r ${UNITS}/portico.service.d`,
    thenAgain: true,
  },
  {
    name: "the proxy's unit is a link to /dev/null (masked)",
    breaks: `ln -sf /dev/null ${UNITS}/portico.service && systemctl daemon-reload`,
    rows: ["proxy", "files"],
    message: "portico.service: masked … systemctl unmask portico.service",
    heals: "again",
  },
  {
    name: "the proxy is stopped",
    breaks: "systemctl stop portico.socket portico.service",
    rows: ["proxy"],
    message: "does not run … portico.socket: inactive",
    down: ALL,
    heals: "again",
  },
  {
    name: "another program has port 80 before the proxy",
    breaks: `systemctl stop portico.socket portico.service; systemd-run --unit=thief --quiet /usr/lib/portico/node -e 'require("http").createServer((q, r) => r.writeHead(404).end("thief")).listen(80, "0.0.0.0")'; sleep 1; systemctl start portico.socket; true`,
    rows: ["proxy"],
    message:
      "another program has a port of the proxy … listens there … systemctl disable --now thief.service",
    down: ALL,
    heals:
      "systemctl stop thief; systemctl reset-failed portico.socket; systemctl enable --now portico.socket portico.service",
    remedy: "stop the other program, and start the proxy",
  },
  {
    name: "the proxy is not enabled",
    breaks: "systemctl disable portico.socket portico.service 2>&1",
    rows: ["proxy"],
    message: "not enabled",
    heals: "again",
  },
  {
    name: "the proxy is killed",
    breaks: "kill -9 $(systemctl show -P MainPID portico); sleep 4",
    rows: [],
    heals: "itself",
  },
  {
    name: "the control socket of the proxy is removed",
    breaks: "rm /run/portico/control.sock",
    rows: ["proxy"],
    message: "does not respond to commands … systemctl restart portico.service",
    heals: "systemctl restart portico.service",
  },
  {
    name: "nft is removed",
    breaks: "mv /usr/sbin/nft /root/",
    rows: ["units"],
    unknown: ["firewall"],
    message: "portico-firewall.service: its program /usr/sbin/nft does not exist … nftables",
    heals: "mv /root/nft /usr/sbin/",
    remedy: "`apt-get install nftables`",
  },
  {
    name: "a worker is killed",
    breaks: "kill -9 $(pgrep -f '^portico: worker' | head -n 1); sleep 1",
    rows: [],
    heals: "itself",
  },
  {
    name: "the main process of the proxy is stopped by a signal",
    breaks: "kill -STOP $(systemctl show -P MainPID portico)",
    rows: ["units"],
    message: "portico.service: its process … was stopped by a signal … systemctl kill --signal=SIGCONT",
    heals: "systemctl kill --signal=SIGCONT portico.service",
  },
  {
    name: "a worker of the proxy hangs, and half a minute passes",
    breaks: "kill -STOP $(pgrep -f '^portico: worker' | head -n 1); sleep 40",
    rows: [],
    heals: "itself",
  },
  {
    name: "the timer of the daily check is stopped",
    breaks: "systemctl stop portico-doctor.timer",
    rows: ["units"],
    message: "portico-doctor.timer: is inactive: it should run … systemctl start portico-doctor.timer",
    heals: "systemctl start portico-doctor.timer",
  },
  {
    name: "the timer of the daily check is disabled",
    breaks: "systemctl disable --now portico-doctor.timer 2>&1",
    rows: ["units"],
    message: "it does not start at boot … systemctl enable --now portico-doctor.timer",
    heals: "again",
  },
  {
    name: "the packet filter is flushed",
    breaks: "nft flush ruleset",
    rows: ["firewall"],
    message: "the table inet portico is not loaded",
    heals: "again",
  },
  {
    name: "a rule is added that closes port 443",
    breaks: `nft insert rule inet portico input iif != lo tcp dport 443 reject with tcp reset`,
    rows: ["firewall"],
    message: "the table inet portico is loaded with other rules",
    down: HTTPS,
    heals: "again",
  },
  {
    name: "the packet filter's unit is stopped",
    breaks: "systemctl stop portico-firewall",
    rows: ["firewall"],
    message: "portico-firewall.service: is inactive",
    heals: "again",
  },
  {
    name: "the rule set is edited and loaded",
    breaks: `${sed(RULES, "s/{ 22, 80, 443 }/{ 22, 80, 443, 3307 }/")} && nft -f ${RULES}`,
    rows: ["files"],
    message: "firewall.nft: has different content",
    heals: "again",
  },
  {
    name: "the distribution's rules are loaded again, which flushes all other rules",
    breaks: "systemctl restart nftables.service; sleep 1",
    rows: [],
    heals: "itself",
  },
  {
    name: "the host loses its IPv4 address",
    breaks: "ip address del 203.0.113.10/24 dev eth0",
    rows: ["addresses"],
    message: "203.0.113.10: no interface has it",
    down: ALL,
    heals: "networkctl reconfigure eth0; sleep 2",
  },
  {
    name: "the host loses its IPv6 address",
    breaks: "ip address del 2001:db8:113::10/64 dev eth0",
    rows: ["addresses"],
    message: "2001:db8:113::10: no interface has it",
    heals: "networkctl reconfigure eth0; sleep 3",
  },
  {
    name: "the host loses its default route",
    breaks: "ip route del default",
    rows: ["addresses"],
    message:
      "IPv4 default route: is missing … 203.0.113.1 … ip -4 route add default via 203.0.113.1 dev eth0",
    heals: "networkctl reconfigure eth0; sleep 2",
  },
  {
    name: "a table of another program drops packets to port 443",
    breaks: `printf 'table ip blocker {\n chain input {\n type filter hook input priority -10; policy accept;\n iif != "lo" tcp dport 443 counter drop\n }\n}\n' | nft -f -`,
    rows: ["outside"],
    message:
      "rules of another table … 203.0.113.10: port 443 cannot be reached … ip blocker input … nft delete rule",
    down: HTTPS,
    heals: "nft delete table ip blocker",
    remedy: "`nft delete rule` with the handle that the row has",
  },
  {
    name: "a table of another program sends port 443 elsewhere, as Docker does",
    breaks: `printf 'table ip nat {\n chain DOCKER {\n tcp dport 443 redirect to :9999\n }\n chain PREROUTING {\n type nat hook prerouting priority dstnat; policy accept;\n fib daddr type local jump DOCKER\n }\n}\n' | nft -f -`,
    rows: ["outside"],
    message:
      "rules of another table … port 443 cannot be reached … ip nat DOCKER: tcp dport 443 redirect … a container publishes the port",
    down: HTTPS,
    heals: "nft delete table ip nat",
    remedy: "`nft delete rule` with the handle that the row has",
  },
  {
    name: "a table of another program lets in port 22 only, as ufw does",
    breaks: `printf 'table ip filter {\n chain INPUT {\n type filter hook input priority filter; policy drop;\n iif "lo" accept\n ct state established,related accept\n tcp dport 22 accept\n }\n}\n' | nft -f -`,
    rows: ["outside"],
    message: "rules of another table … ip filter INPUT: policy drop … nft insert rule ip filter INPUT",
    down: ALL,
    heals: "nft delete table ip filter",
    remedy: "`nft insert rule`, or `ufw allow 80,443/tcp`",
  },
  {
    name: "a disk is full",
    breaks: "mount -t tmpfs -o size=1m full /tmp && dd if=/dev/zero of=/tmp/all bs=1M 2> /dev/null; true",
    rows: ["space"],
    message: "/tmp: 0 MiB are left",
    heals: "umount /tmp",
    remedy: "make room on the disk",
  },
];

const LOG_FILES: readonly Breakage[] = [
  {
    name: "the log directory is removed, and the proxy reloads",
    breaks: `rm -rf ${LOGS} /var/log/portico && ${reload}`,
    rows: ["logs"],
    message: "/var/log/portico: was created again after the proxy started … systemctl restart portico",
    heals: "again",
  },
  {
    name: "the log directory is removed",
    breaks: `rm -rf ${LOGS} /var/log/portico`,
    rows: ["logs"],
    message: "/var/log/portico: does not exist … systemctl restart portico.service",
    heals: "again",
  },
  {
    name: "the log directory is created again by hand",
    breaks: `rm -rf ${LOGS} && mkdir -m 750 ${LOGS}`,
    rows: ["logs"],
    message: "/var/log/portico: was created again after the proxy started",
    heals: "systemctl restart portico",
  },
  {
    name: "a log file is removed",
    breaks: `rm ${LOGS}/error.log`,
    rows: ["logs"],
    message: "error.log: does not exist … SIGUSR1",
    heals: reopen,
  },
  {
    name: "a log file is renamed, without a signal to the proxy",
    breaks: `mv ${LOGS}/error.log ${LOGS}/error.log.1`,
    rows: ["logs"],
    message: "error.log: is written as error.log.1",
    heals: `${reopen}; sleep 0.5`,
  },
  {
    name: "a rotation creates files that belong to root, and signals the proxy",
    breaks: `mv ${LOGS}/error.log ${LOGS}/error.log.1 && install -m 640 /dev/null ${LOGS}/error.log && ${reopen}; sleep 0.5`,
    rows: [],
    heals: "itself",
  },
  {
    name: "a log file is given to root",
    breaks: `chown 0:0 ${LOGS}/error.log && chmod 600 ${LOGS}/error.log`,
    rows: ["logs"],
    message: "error.log: belongs to user 0",
    heals: reload,
  },
  {
    name: "log files are given to root, and the proxy restarts",
    breaks: `chown 0:0 ${LOGS}/*.log && chmod 600 ${LOGS}/*.log && systemctl restart portico`,
    rows: [],
    heals: "itself",
  },
  {
    name: "a log file is replaced by a directory, and the proxy restarts",
    breaks: `rm ${LOGS}/error.log && mkdir ${LOGS}/error.log && systemctl restart portico`,
    rows: ["logs"],
    message: "error.log: is a directory",
    heals: `rmdir ${LOGS}/error.log && ${reopen}; sleep 0.5`,
  },
  {
    name: "logrotate runs",
    breaks: `echo line >> ${LOGS}/error.log; logrotate --force /etc/logrotate.d/portico && sleep 0.5 && ls ${LOGS}/error.log.1 ${LOGS}/error.log`,
    rows: [],
    heals: "itself",
  },
  {
    name: "logrotate is not installed",
    breaks: "mv /usr/sbin/logrotate /root/",
    rows: ["rotation"],
    message:
      "nothing rotates the logs … /usr/sbin/logrotate: does not exist … apt-get install --reinstall logrotate",
    heals: "mv /root/logrotate /usr/sbin/",
    remedy: "`apt-get install logrotate`",
  },
  {
    name: "logrotate fails",
    breaks: "echo '}' > /etc/logrotate.d/broken; systemctl start logrotate.service; true",
    rows: ["rotation"],
    message: "logrotate.service: has failed … systemctl restart logrotate.service",
    heals: "rm /etc/logrotate.d/broken && systemctl restart logrotate.service",
    remedy: "correct the file that the journal names, and restart `logrotate.service`",
  },
  {
    name: "the timer of logrotate is disabled",
    breaks: "systemctl disable --now logrotate.timer",
    rows: ["rotation"],
    message: "logrotate.timer: is inactive: nothing starts logrotate",
    heals: "systemctl enable --now logrotate.timer",
  },
];

const APPLICATION: readonly Breakage[] = [
  {
    name: "the web application is stopped",
    breaks: "systemctl stop sync-web",
    rows: ["units", "web-application"],
    message: "sync-web.service: is inactive … systemctl start sync-web.service",
    down: ["web"],
    heals: "again",
  },
  {
    name: "the web application starts in its FastCGI variant",
    breaks: dropIn("sync-web", daemon("start-fastcgi", "web", "127.0.0.1", 8000)),
    rows: ["web-application"],
    message: "fastcgi start variant is used … start-fastcgi",
    down: ["web"],
    heals: noDropIn("sync-web"),
    remedy: "correct `ExecStart` of the unit",
  },
  {
    name: "the web application no longer starts",
    breaks: dropIn("sync-web", "ExecStartPre=/bin/false"),
    rows: ["units", "web-application"],
    message: "sync-web.service: … systemctl",
    down: ["web"],
    heals: noDropIn("sync-web"),
    remedy: "correct the unit, and start it",
  },
  {
    name: "the web application redirects to another host",
    breaks: dropIn("sync-web", "Environment=WRONG_HOST=other.example.org"),
    rows: ["response: application over https"],
    message: "SERVICE_URL … other.example.org",
    heals: noDropIn("sync-web"),
    remedy: "correct the unit, and restart it",
  },
  {
    name: "the web application does not start at boot",
    breaks: "systemctl disable sync-web 2>&1",
    rows: ["units"],
    message: "sync-web.service: is disabled … systemctl enable --now sync-web.service",
    heals: "systemctl enable --now sync-web 2>&1",
  },
  {
    name: "another program uses the web application's port",
    breaks: `systemctl stop sync-web && systemd-run --unit=thief --quiet /usr/lib/portico/node -e 'require("http").createServer((q, r) => r.end("thief")).listen(8000, "127.0.0.1")'; sleep 1`,
    rows: ["units", "web-application"],
    message: "sync-web.service: is inactive",
    down: ["web"],
    heals: "systemctl stop thief && systemctl start sync-web; sleep 0.7",
    remedy: "stop the other program, and start the unit of the web application",
  },
  {
    name: "a daemon listens on all addresses, without a packet filter",
    breaks: `systemctl stop portico-firewall; ${dropIn("sync-web", daemon("start", "web", "0.0.0.0", 8000))}`,
    rows: ["ports", "firewall"],
    message: "port 8000 must be reachable on localhost only",
    heals: noDropIn("sync-web"),
    remedy: "let the daemon listen on loopback, and start the packet filter",
    thenAgain: true,
  },
  {
    name: "the file server is stopped",
    breaks: "systemctl stop sync-fileServer",
    rows: ["units"],
    message: "sync-fileServer.service: is inactive … systemctl start sync-fileServer.service",
    down: ["files"],
    heals: "again",
  },
  {
    name: "the WebDAV daemon is stopped",
    breaks: "systemctl stop sync-webdav",
    rows: ["units"],
    message: "sync-webdav.service: is inactive … systemctl start sync-webdav.service",
    down: ["webdav"],
    heals: "again",
  },
  {
    name: "SERVICE_URL is changed",
    breaks: sed(NETWORK_CONF, "s/https:/http:/"),
    rows: ["public-urls"],
    message: "SERVICE_URL is http://… and should be https://…",
    heals: "again",
  },
  {
    name: "the file server has another port in its settings",
    breaks: sed(FILE_SERVER_CONF, "s/^port.*/port = 9999/"),
    rows: ["settings"],
    message: "port is 9999",
    heals: "again",
  },
  {
    name: "the disk of the media files is not mounted",
    breaks: "mount -t tmpfs -o mode=755 empty /srv/sync/media",
    rows: ["media-permissions"],
    message:
      "its disk may not be mounted … /srv/sync/media: is empty, and had files when the deployment was activated",
    down: ["media"],
    heals: "umount /srv/sync/media; sleep 1.1",
    remedy: "mount the disk",
  },
  {
    name: "other users may not enter a media directory",
    breaks: "chmod o-rx /srv/sync/media/icons; sleep 1.1",
    rows: ["media-permissions"],
    message: "is not readable by others … /srv/sync/media/icons",
    down: ["media"],
    heals: "chmod o+rx /srv/sync/media/icons; sleep 1.1",
  },
];

const ACTIVATION: readonly Breakage[] = [
  {
    name: "an activation is killed while a daemon starts",
    breaks: `mkdir -p ${UNITS}/sync-web.service.d && printf '[Service]\\nExecStartPre=/bin/sleep 20\\n' > ${UNITS}/sync-web.service.d/broken.conf; systemctl daemon-reload; systemctl stop sync-web
      verb=activate; ${PORTICO} $verb --again > /dev/null 2>&1 &
      until [ "$(systemctl is-active sync-web)" = activating ]; do sleep 0.1; done
      pkill -9 -f '[p]ortico.mjs activate'; systemctl stop 'portico-activation-*' sync-web; ${noDropIn("sync-web")}`,
    rows: ["activation"],
    message: "the activation of … was cut off",
    heals: "again",
  },
  {
    name: "the last good state is lost",
    breaks: `mv ${STORE}/state.json /root/`,
    rows: ["activation"],
    message: "state.json: does not exist",
    heals: `mv /root/state.json ${STORE}/`,
    remedy:
      "restore `/var/lib/portico/deployment/state.json` from a backup, or run `portico activate`, which begins a new record",
  },
  {
    name: "the command that runs portico on the host is lost",
    breaks: `rm ${STORE}/command`,
    rows: ["activation"],
    message:
      "command: is missing or was changed … /usr/lib/portico/node /usr/lib/portico/portico.mjs activate --again",
    heals: "again",
  },
  {
    name: "a stored content is lost",
    breaks: `rm ${STORE}/blobs/$(sha256sum ${CONFIG} | cut -c -64)`,
    rows: ["activation"],
    message: "is missing: /etc/portico/portico.json could not be put back",
    heals: "again",
  },
  {
    name: "every user may read the store",
    breaks: `chmod 755 ${STORE}`,
    rows: ["activation"],
    message: "can be accessed by users other than root (mode 0755)",
    heals: `chmod 700 ${STORE}`,
  },
  {
    name: "an apply into a directory that another user may change",
    breaks: `rm ${PAGE} && chown 65534 /usr/share/portico`,
    tries: {
      command: `${PORTICO} activate --again`,
      message:
        "index.html: is below a directory of user 65534 … files.shared-directory … nothing was changed",
    },
    rows: ["files", "response: default server"],
    message: "index.html: is missing",
    down: ["default page"],
    heals: "chown 0 /usr/share/portico",
    thenAgain: true,
  },
  {
    name: "an apply while /run is full",
    breaks: "fallocate -l $(($(stat -f -c '%a*%S' /run) - 8192)) /run/full",
    tries: {
      command: `${incoming}; ${upload}`,
      message:
        "/run…: is on a file system that has … KiB left, but the deployment needs … KiB [activation.no-room]",
    },
    rows: ["space"],
    message: "a file system is full … /run: 0 MiB are left",
    heals: "rm /run/full",
    remedy: "make room on the file system",
  },
  {
    name: "an apply while IPv6 is disabled",
    breaks: `chmod 640 ${TLS}/cacert.pem && sysctl -qw net.ipv6.conf.all.disable_ipv6=1`,
    tries: {
      command: `${PORTICO} activate --again`,
      message:
        "[::]:443: is an IPv6 address, but IPv6 is disabled on this host … activation.no-ipv6 … nothing was changed",
    },
    rows: ["addresses", "files"],
    message: "2001:db8:113::10: no interface has it",
    heals: "sysctl -qw net.ipv6.conf.all.disable_ipv6=0; networkctl reconfigure eth0; sleep 3",
    thenAgain: true,
  },
  {
    name: "an apply that cannot write to /etc/portico",
    breaks: `echo changed >> ${RULES}.bak; chmod 644 ${TLS}/privkey.pem && mount --bind /etc/portico /etc/portico && mount -o remount,ro,bind /etc/portico`,
    tries: { command: `${PORTICO} activate --again`, message: "Read-only file system" },
    rows: ["activation", "files", "tls"],
    message: "the activation of … was cut off",
    heals: `umount /etc/portico; rm ${RULES}.bak`,
    remedy: "make the directory writable",
    thenAgain: true,
  },
];

/** By subject, in the order in which they are done. */
export const BREAKAGES: Readonly<Record<string, readonly Breakage[]>> = {
  "Delivered files": FILES,
  "System and network": SYSTEM,
  Logs: LOG_FILES,
  "The application": APPLICATION,
  "Activation and its store": ACTIVATION,
};

/** A destroy of a host that was broken before: what is done, and what is left afterwards. */
export interface BrokenDestroy {
  readonly name: string;
  readonly breaks: string;
  /** Exit code of the destroy, and what it says; undefined where that depends on the moment. */
  readonly code: 0 | 1;
  readonly message?: Said;
  /** What is left of the deployment on the host, one path per line, without what another run removes. */
  readonly left?: string;
  /** What has to be done to remove the rest. */
  readonly heals?: string;
  /** The same for an administrator, in words, where `heals` undoes what only a test does. */
  readonly remedy?: string;
}

export const DESTROYS: readonly BrokenDestroy[] = [
  {
    name: "a destroy after files, units and rules were removed by hand",
    breaks: `rm ${CONFIG} ${UNITS}/portico.socket ${PAGE} && nft flush ruleset && systemctl stop portico portico.socket`,
    code: 0,
    message: "the deployment is gone",
  },
  {
    name: "a destroy that is killed, then another destroy",
    breaks: `verb=deactivate; /root/node /root/portico.mjs $verb > /dev/null 2>&1 &
      until [ -e ${STORE}/journal.json ]; do sleep 0.02; done; pkill -9 -f '[p]ortico.mjs deactivate'`,
    code: 0,
  },
  {
    name: "a destroy that cannot write to /etc/portico, then a destroy that can",
    breaks: "mount --bind /etc/portico /etc/portico && mount -o remount,ro,bind /etc/portico",
    code: 1,
    message: "Read-only file system … could not remove everything",
    heals: "umount /etc/portico",
    remedy: "make the directory writable",
  },
  {
    name: "a destroy after the application's settings were edited by hand",
    breaks: `echo '# by hand' >> ${WEB_SETTINGS}`,
    code: 0,
    message: "the deployment is gone",
  },
];
