import * as z from "zod";
import { line, name, routePath } from "../schema/fields.js";

/** What the security review of a config (`portico check --security`) has to know, and no request needs. */

export const privatePaths = z
  .array(routePath("A path of the application.", "/admin"))
  .optional()
  .meta({
    description:
      "Paths that the application's manual tells to close to the internet. `portico check --security` reports those that " +
      "are open; `access` of a route closes a path.",
    examples: [["/admin"]],
  });

/** Ids of the findings that can be accepted. */
export const ACCEPTABLE = [
  "security.plain-http",
  "security.private-open",
  "security.no-guard",
  "security.self-signed",
  "security.no-hsts",
] as const;

export const acceptedRisk = z.strictObject({
  finding: z.enum(ACCEPTABLE).describe("Id of the finding."),
  at: name("Name of the site or of the listener. Default: everywhere.", "wiki").optional(),
  reason: line("Why the risk is acceptable, for readers of the review.", "Only reached over the VPN."),
});

export const acceptedRisks = z
  .array(acceptedRisk)
  .default([])
  .meta({
    description:
      "Findings of `portico check --security` that are acceptable here, each with a reason. The review shows them as " +
      "accepted, and names those that accept nothing.",
    examples: [[{ finding: "security.no-hsts", at: "wiki", reason: "Old devices need http." }]],
  });
