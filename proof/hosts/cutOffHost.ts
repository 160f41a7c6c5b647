import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import type { DeploymentInput } from "../../src/model/index.js";
import {
  ActivationHost,
  CONFIG,
  DAEMONS,
  everything,
  FIREWALLED,
  type HostedFiles,
  SERVICES,
  settings,
  STORE,
  values,
} from "./activationHost.js";
import { Random, SEED } from "../../testkit/random.js";
import { type Result } from "./harness/index.js";
import { eventually } from "../../testkit/waiting.js";

/**
 * Activations and deactivations that are cut off at a step, before it is begun or once it is: by a kill of the process,
 * with it of whoever asked for it (a terminal or a connection that is gone), by a reboot, by a loss of power.
 */

/** There once a process has been stopped at its step. */
const MARK = "/var/lib/cut-off";

/**
 * Stands in the way of `systemctl` and `networkctl`: who takes the n-th step is cut off, either before it is begun or as
 * soon as it is. An upgrade, which systemctl has no part in, is told by the question for the control socket that comes
 * before it; it has begun when there are two masters.
 */
const SHIM = `#!/bin/bash
shopt -s extglob
program=/usr/bin/\${0##*/} step=
case "\${0##*/} $1" in
  "networkctl reload") step="networkctl reload" ;;
  "systemctl show") [[ "$*" != *RuntimeDirectory* ]] || [ ! -e ${STORE}/journal.json ] || step=upgrade ;;
  systemctl\\ @(start|stop|restart|reload|reload-or-restart|enable|reenable|disable|reset-failed|daemon-reload)) step="$*" ;;
esac
[ -n "$step" ] && [ -e /run/cut ] && grep -q -e --record /proc/$PPID/cmdline || exec "$program" "$@"
echo "$step" >> /run/steps
read -r at when how < /run/cut
[ "$(wc -l < /run/steps)" = "$at" ] || exec "$program" "$@"
cut() {
  case $how in
    kill) kill -9 $PPID ;;
    INT|HUP|KILL) kill -$how "$(< /run/caller)"; kill -9 $PPID ;;
    power) : > ${MARK}; exec sleep infinity ;;
    reboot) : > ${MARK}; until [ "$(/usr/bin/systemctl is-system-running)" = stopping ]; do sleep 0.02; done ;;
  esac
}
if [ "$when" = begun ]; then
  case $step in
    upgrade)
      # Who asks goes on at once; what happens then is not for its ears.
      { while [ "$(pgrep -fc '^portico: master')" -lt 2 ]; do sleep 0.01; done; cut; } > /dev/null 2>&1 &
      exec "$program" "$@" ;;
    "networkctl reload") "$program" "$@" ;;
    *) "$program" --no-block "$@" ;;
  esac
fi
cut
exec "$program" "$@"
`;

/** What becomes of an activation, by turns. */
const WAYS = ["kill", "power", "HUP", "reboot", "INT", "power", "KILL", "power"] as const;
type Way = (typeof WAYS)[number];
type When = "before" | "begun";

const CALLER = "echo $$ > /run/caller; exec";
const WORKERS = "systemctl list-units --plain --no-legend 'portico-activation-*'";
const PORTS = [22, 80, 443];

export type State = "none" | "base" | "walled" | "other" | "release" | "sites";

export class CutOffHost {
  private constructor(private readonly site: ActivationHost) {}
  /** What was seen of each state that the host has been in. */
  private readonly seen = new Map<State, string>();
  /** Steps that were cut off, by what they do. */
  readonly kinds = new Set<string>();

  static async boot(name: string): Promise<CutOffHost> {
    const one = new CutOffHost(await ActivationHost.boot(name));
    const { host } = one.site;
    await host.write("/usr/local/bin/systemctl", SHIM, "0755");
    await host.must("ln -s systemctl /usr/local/bin/networkctl");
    await host.write(VAULT_ENV, "LOG_LEVEL=info\n");
    await host.write("/etc/systemd/system/notes.service", NOTES);
    await host.must("systemctl daemon-reload; systemctl enable --now notes");
    // So many starts in a row are the test's doing.
    const units = [...everything, "portico-firewall.service", "notes.service"];
    for (const unit of units) {
      await host.write(
        `/etc/systemd/system.control/${unit}.d/limit.conf`,
        "[Unit]\nStartLimitIntervalSec=0\n",
      );
    }
    await host.must("systemctl daemon-reload");
    one.seen.set("none", await one.traces());
    return one;
  }

  remove(): Promise<void> {
    return this.site.remove();
  }

  /**
   * Goes from one state to another and back, and is cut off at a step of each kind, before it is begun or once it is: then
   * the host is in the one state or the other, by itself, and the application runs.
   * @param alike whether there and back are the same steps: then each kind is cut off in one of the two directions
   * @param every whether it is cut off at each step, not only at one of each kind
   */
  async cutOffEverywhere(from: State, to: State, alike: boolean, every = false): Promise<void> {
    await this.go(from);
    const there = await this.go(to);
    await this.expectState(to, "at once");
    const back = await this.go(from);
    await this.expectState(from, "at once");
    if (alike) expect(back).toEqual(there);
    const cutsThere = cutsOf(there, every);
    const cuts = new Map([
      [to, cutsThere],
      [from, alike ? cutsThere : cutsOf(back, every)],
    ]);
    let [at, next] = [from, to];
    while ([...cuts.values()].some((left) => left.length > 0)) {
      const cut = cuts.get(next)!.shift();
      const before = this.goodState()?.document;
      await this.go(next, cut);
      // What is cut off by a boot before it served is not begun anew; a deactivation goes on from where it was.
      const isByBoot = cut?.way === "power" || cut?.way === "reboot";
      const goesBack = isByBoot && next !== "none" && this.goodState()?.document === before;
      if (!goesBack) [at, next] = [next, at];
      await this.expectState(at, `${JSON.stringify(cut)} (PORTICO_SEED=${SEED})`);
      if (cut !== undefined) this.kinds.add(kindOf(cut.step));
    }
  }

  /** Goes to a state and returns the steps that it took; with a cut it is cut off. */
  async go(to: State, cut: Cut = NO_CUT): Promise<string[]> {
    const { host } = this.site;
    const { at, when, way } = cut;
    await host.must(`rm -f ${MARK}; : > /run/steps; echo ${at} ${when} ${way} > /run/cut`);
    // A daemon that has failed has its state forgotten on the way.
    if (to === "other" || to === "walled") await host.must(KILL_DAEMON);
    const going = this.act(to);
    if (way === "power" || way === "reboot") {
      const mark = path.join(host.root, MARK);
      await eventually(async () => existsSync(mark), `until ${way} at step ${at}`, {
        everyMs: 100,
      });
      await (way === "power" ? host.powerCut() : host.reboot());
      await going;
      // The boot's own jobs, and then the recovery, where there is anything to recover.
      const jobs = async (): Promise<string> => (await host.run(RECOVERY)).stdout;
      await eventually(async () => (await jobs()) === "inactive\n", "until it has come to its end", {
        everyMs: 250,
      });
      // A shutdown lets it roll back; after a loss of power the boot does, and the next run tells of it.
      if (way === "power") await this.expectRecord();
      else await host.must(`rm -f ${RECORDS}`);
      return [];
    }
    const { code, stderr } = await going;
    if (way === "kill") expect({ cut, code, stderr }).toEqual({ cut, code: 0, stderr: "" });
    else {
      await eventually(async () => (await host.run(WORKERS)).stdout === "", "until it has come to its end", {
        everyMs: 250,
      });
      await this.expectRecord();
    }
    return (await host.must("rm /run/cut; cat /run/steps")).trim().split("\n");
  }

  /** What the next run tells, of a run that nobody followed. */
  private async expectRecord(): Promise<void> {
    expect(await this.site.host.must(`cat ${RECORDS}; rm ${RECORDS}`)).toMatch(/\n\{"exit":0\}\n$/);
  }

  /** What brings the host to a state. */
  private act(to: State): Promise<Result> {
    const { site } = this;
    const walled = (ports = PORTS): HostedFiles => site.withFirewall(site.base, ports);
    const deploy = (files: HostedFiles, more: Partial<DeploymentInput> = {}, name = site.host.address) =>
      site.deploy(files, { ...more, settings: settings(values(name)) }, "", CALLER);
    switch (to) {
      case "none":
        // By the programs that it takes away.
        return site.host.run(`${CALLER} ${STORE}/command deactivate --purge`, { timeoutSeconds: 120 });
      case "base":
        return deploy(site.base);
      case "walled":
        return deploy(walled(), FIREWALLED);
      case "sites": {
        const { files } = settings(values(site.host.address))!;
        const more = { services: WITH_VAULT, settings: { files: [...files, VAULT_SETTINGS], apply: true } };
        const vault = { ...walled([...PORTS, 8999]), ...VAULT, ...withVault(site) };
        return site.deploy(vault, more, "", CALLER);
      }
      case "release":
        return deploy(site.withCertificate(site.withRuntime(site.base)));
      case "other": {
        const files = { ...site.withListener(walled([...PORTS, 8888])), ...MORE };
        return deploy(files, FIREWALLED, "files.example.org");
      }
    }
  }

  /** What activation knows of the host. */
  private goodState(): { readonly document: string } | undefined {
    const file = path.join(this.site.host.root, STORE, "state.json");
    return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
  }

  /** All that two states may differ in. */
  private async traces(): Promise<string> {
    const {
      id: _,
      activatedAt: __,
      defaultRoutes: ___,
      ...state
    } = { id: 0, activatedAt: 0, defaultRoutes: 0, ...this.goodState() };
    return [
      await this.site.traces(),
      (await this.site.host.run(LOADED)).stdout,
      ...Object.entries(state).map(([name, value]) => `${name}: ${JSON.stringify(value)}`),
    ].join("\n");
  }

  private async expectState(state: State, at: string): Promise<void> {
    const { site } = this;
    const traces = await this.traces();
    if (!this.seen.has(state)) this.seen.set(state, traces);
    const guarded = state === "none" || state === "base" || state === "release" ? [] : [FIREWALL];
    const vault = state === "sites" ? ["vault.service", "vault-sweep.timer"] : [];
    const own = state === "none" ? Object.values(DAEMONS) : everything;
    const units = [...own, ...guarded, ...vault, "notes.service"];
    const page = state === "none" ? "000" : "302";
    const seen = {
      traces,
      units: await site.active(...units),
      failed: (await site.host.run("systemctl --failed --plain --no-legend")).stdout,
      page: await site.seenOutside(`https://${site.host.address}/sync/`),
    };
    const expected = {
      traces: this.seen.get(state),
      units: units.map(() => "active").join(" "),
      failed: "",
      page,
    };
    expect({ at, ...seen }).toEqual({ at, ...expected });
  }
}

interface Cut {
  readonly step: string;
  /** Which one it is; 0: none. */
  readonly at: number;
  readonly when: When;
  readonly way: Way;
}

const NO_CUT: Cut = { step: "", at: 0, when: "before", way: "kill" };

const kindOf = (step: string): string => step.replace(/ -- .*/, "");

/**
 * A step of each kind, before it is begun or once it is, in one way after the other; another seed takes others. What an
 * activation has done is known by its journal alone, whichever unit a step is for: proof/activation/kill.test.ts ends one at
 * every change.
 */
function cutsOf(steps: readonly string[], every: boolean): Cut[] {
  const random = new Random();
  const first = random.pick(2 * WAYS.length);
  const numbered = steps.map((step, i) => ({ step, at: i + 1 }));
  const kinds = [...new Set(steps.map(kindOf))];
  const oneOfEach = () =>
    kinds.map((kind) => random.of(...numbered.filter(({ step }) => kindOf(step) === kind)));
  return (every ? numbered : oneOfEach()).map((one, i) => ({
    ...one,
    when: (first + i) % 2 === 0 ? "before" : "begun",
    way: WAYS[((first >> 1) + i) % WAYS.length]!,
  }));
}

const FIREWALL = "portico-firewall.service";

/** What systemd and the kernel have of a site, a store that has no journal, and all daemons that a site brings. */
const LOADED = `systemctl list-units --all --plain --no-legend 'vault*' 'notes*' | tr -s ' ' | grep -v ' not-found inactive '
systemctl list-unit-files --no-legend 'vault*' 'notes*'
pgrep -c -f 'exit 143.* TERM'
cat /opt/vault/vault.env
nft --stateless list ruleset
ls -d /run/vault /run/credentials/vault* ${STORE}/journal.json /etc/systemd/system/portico-recovery.service 2> /dev/null`;

const VAULT_ENV = "/opt/vault/vault.env";
/** A daemon that was there before, and reads a settings file of the site. */
const NOTES = `[Service]
EnvironmentFile=${VAULT_ENV}
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
`;

/** The units of a site. Its daemon exits with an error when it is stopped. */
const VAULT: HostedFiles = {
  "/etc/systemd/system/vault.service": {
    role: "unit",
    content: `[Service]
EnvironmentFile=${VAULT_ENV}
LoadCredential=token:/etc/vault/token
RuntimeDirectory=vault
ExecStart=/bin/bash -c "trap 'exit 143' TERM; sleep infinity & wait"
[Install]
WantedBy=multi-user.target
`,
  },
  "/etc/systemd/system/vault.service.d/limits.conf": {
    role: "unit",
    content: "[Service]\nLimitNOFILE=512\n",
  },
  "/etc/systemd/system/vault-sweep.service": {
    role: "unit",
    content: "[Service]\nType=oneshot\nExecStart=/bin/true\n",
  },
  "/etc/systemd/system/vault-sweep.timer": {
    role: "unit",
    content: "[Timer]\nOnCalendar=yearly\n[Install]\nWantedBy=timers.target\n",
  },
  "/etc/vault/token": { role: "other", mode: "0600", content: "a token\n" },
};

const WITH_VAULT: DeploymentInput["services"] = {
  ...FIREWALLED.services,
  daemons: [
    ...SERVICES.daemons,
    ...["vault.service", "notes.service"].map((unit) => ({ unit, restartOn: ["vault"] })),
  ],
};

const VAULT_SETTINGS = {
  name: "vault",
  site: "vault",
  path: VAULT_ENV,
  kind: "env",
  items: [{ name: "DOMAIN", value: "https://files.example.org" }],
} as const;

/** A config with a virtual server of the site. */
function withVault(site: ActivationHost): HostedFiles {
  const config = site.proxyConfig();
  const vault: (typeof config.virtualServers)[number] = {
    ...{ name: "vault", site: "vault", serverNames: ["files.example.org"], listeners: ["https"] },
    routes: [{ name: "vault", path: "/", action: { type: "respond", status: 204 } }],
  };
  const virtualServers = [...config.virtualServers, vault];
  return { [CONFIG]: { role: "config", content: JSON.stringify({ ...config, virtualServers }) } };
}

const RECORDS = "/run/portico-activation/*";
const RECOVERY = "systemctl is-active portico-recovery; systemctl list-jobs --no-legend";
const KILL_DAEMON = `systemctl kill --signal=KILL sync-dav
  while systemctl is-active --quiet sync-dav; do sleep 0.02; done`;

/** A drop-in for a daemon, and a file of the network's. */
const MORE: HostedFiles = {
  "/etc/systemd/network/90-portico.network": {
    role: "network",
    content: "[Match]\nName=none\n\n[Network]\nDHCP=no\n",
  },
  "/etc/systemd/system/sync-web.service.d/portico.conf": {
    role: "unit",
    content: "[Service]\nEnvironment=BY=portico\n",
  },
};
