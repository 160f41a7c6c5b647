import type { TestHost } from "../harness/index.js";

const TAKEN = "/run/taken";

/**
 * A local user without any rights (`nobody`), who writes a program of its own into whatever it can write to while an
 * apply runs: a hundred times a second where scripts and uploads lie, and by a search of the whole host.
 */
export class Intruder {
  private constructor(private readonly host: TestHost) {}

  /** Lets it begin. The home directories are opened, as some hosts have them: what protects must lie below. */
  static async letIn(host: TestHost): Promise<Intruder> {
    await host.must("chmod 0755 /root /home/*; install -d -o nobody /run/intruder");
    const places = [
      "/tmp/*.sh",
      ...["/root", "/home/*"].flatMap((home) => [`${home}/*.sh`, `${home}/:*`, `${home}/.portico*/*`]),
      "/root/.portico/*/* /home/*/.portico/*/*",
      "/var/lib/portico/*/* /var/lib/portico/*/*/*",
    ];
    const program = `#!/bin/sh\\n[ "$(id -u)" -eq 0 ] && touch ${TAKEN} || sudo -n touch ${TAKEN}\\n`;
    const spoil = `printf '${program}' > "$f" && echo "$f" >> /run/intruder/changed`;
    await host.write(
      "/opt/loop.sh",
      `while sleep 0.01; do for f in ${places.join(" ")}; do if [ -f "$f" ] && [ -w "$f" ]; then ${spoil}; fi; done; done\n`,
    );
    await host.write(
      "/opt/search.sh",
      `while sleep 0.5; do
        find / /tmp /run /dev/shm -xdev -path /run/intruder -prune -o -type f -writable ! -user nobody -print 2>/dev/null |
          while read -r f; do ${spoil}; done
      done\n`,
    );
    for (const script of ["loop", "search"]) {
      await host.must(
        `systemd-run --quiet --unit=intruder-${script} --uid=nobody --gid=nogroup --nice=5 /bin/sh /opt/${script}.sh`,
      );
    }
    return new Intruder(host);
  }

  /** Ends it. Returns the files that it changed, and whether a program of its own ran as root. */
  async end(): Promise<{ readonly changed: string; readonly taken: boolean }> {
    const { host } = this;
    await host.must("systemctl stop intruder-loop intruder-search; chmod 0700 /root");
    const changed = (await host.run("sort -u /run/intruder/changed 2>/dev/null")).stdout;
    const taken = (await host.run(`test -e ${TAKEN}`)).code === 0;
    await host.must(`rm -rf /run/intruder /opt/loop.sh /opt/search.sh ${TAKEN}`);
    return { changed, taken };
  }
}
