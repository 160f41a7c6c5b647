import { isDropIn, PROXY_ROLES, settingsReaders, type Situation, type Step, unitOf } from "./serviceSteps.js";

/** What users notice of a unit's steps. */
const NOTICED = {
  stop: (unit: string) => `will stop ${unit}`,
  restart: (unit: string) => `will restart ${unit}, which interrupts its work`,
  reload: (unit: string) => `will reload ${unit}, which interrupts nothing`,
  upgrade: (unit: string) => `will upgrade ${unit}, which interrupts nothing`,
  start: (unit: string) => `will start ${unit}`,
};

/** What steps will do to services, and why: a line for each unit, in the order in which they are first touched. */
export function previewOf(steps: readonly Step[], situation: Situation): string[] {
  const done = new Map<string, Set<Step["do"]>>();
  for (const step of steps) {
    if ("unit" in step) done.set(step.unit, (done.get(step.unit) ?? new Set()).add(step.do));
  }
  return [...done].flatMap(([unit, acts]) => {
    const noticed = noticedOf(acts);
    return noticed === undefined ? [] : [`${NOTICED[noticed](unit)}: ${whyOf(unit, situation)}`];
  });
}

function noticedOf(acts: ReadonlySet<Step["do"]>): keyof typeof NOTICED | undefined {
  if (acts.has("restart") || (acts.has("stop") && acts.has("start"))) return "restart";
  if (acts.has("upgrade")) return "upgrade";
  if (acts.has("reload") || acts.has("reload-or-restart")) return "reload";
  return acts.has("stop") ? "stop" : acts.has("start") ? "start" : undefined;
}

function whyOf(unit: string, { services, changed, settings, now, wanted, stale }: Situation): string {
  if (wanted.get(unit)?.active === false) return "it is no longer deployed";
  if (now.get(unit)?.active !== true) return "it does not run";
  const { proxy, firewall, keepalived } = services;
  const isOfProxy = unit === proxy.service || unit === proxy.socket;
  const files = changed.filter(({ path, role }) => {
    if (role === "unit" || isDropIn(path))
      return unitOf(path) === unit || (isOfProxy && unitOf(path) === proxy.socket);
    if (role === "firewall") return unit === firewall;
    if (role === "keepalived") return unit === keepalived;
    return isOfProxy && PROXY_ROLES.includes(role);
  });
  const edited = settingsReaders(services, settings).includes(unit) ? ["the application's settings"] : [];
  const why = [...files.map(({ path }) => path), ...edited];
  if (why.length > 0) return `${why.join(", ")} will change`;
  return stale === undefined ? "another unit needs it" : "what it runs with is not what is installed";
}
