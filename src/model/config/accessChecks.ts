import { type Problem, problem } from "../text/problem.js";
import type { ProxyConfig } from "./config.js";

/** Rules about access policies that span fields. */
export function accessProblems({ accessPolicies = {}, virtualServers }: ProxyConfig): Problem[] {
  const names = Object.keys(accessPolicies);
  return [
    ...names.flatMap((name) => rulelessProblems(`accessPolicies.${name}`, accessPolicies[name]!)),
    ...virtualServers.flatMap(({ routes }, s) =>
      routes.flatMap(({ access }, r) => {
        if (access === undefined || names.includes(access)) return [];
        const more = {
          received: access,
          allowed: names.length === 0 ? "no policy is defined" : names.join(", "),
        };
        const path = `virtualServers[${s}].routes[${r}].access`;
        return [problem("config.unknown-reference", path, "is not the name of an access policy", more)];
      }),
    ),
  ];
}

type Rules = Pick<NonNullable<ProxyConfig["accessPolicies"]>[string], "allow" | "deny" | "denyFile">;

/** A policy that lets everyone in is a mistake: what is open has none. */
export function rulelessProblems(path: string, { allow, deny, denyFile }: Rules): Problem[] {
  if ([allow, deny, denyFile].some((rule) => rule !== undefined)) return [];
  const allowed = "at least one of `allow`, `deny` and `denyFile`";
  return [problem("config.access-without-rule", path, "refuses nobody", { allowed })];
}
