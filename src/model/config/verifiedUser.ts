import type { VerifiedUser } from "../actions/forwardedRequest.js";
import type { PolicyJudge } from "./accessJudge.js";

/** @param judges the policies that the user passed */
export function verifiedUser(judges: readonly PolicyJudge[], user: string): VerifiedUser {
  const basics = judges.flatMap(({ policy }) => policy.basic ?? []);
  const names = [...new Set(basics.flatMap(({ userField }) => userField ?? []))];
  const dropped = new Set(names.map((name) => name.toLowerCase()));
  if (!basics.every(({ passOn }) => passOn)) dropped.add("authorization");
  const value = Buffer.from(user, "utf8").toString("latin1");
  return { dropped, fields: names.map((name) => [name, value] as const) };
}
