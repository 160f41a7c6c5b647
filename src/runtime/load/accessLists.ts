import * as crypto from "node:crypto";
import {
  type AccessLists,
  type AccessPolicyConfig,
  type AccessUsers,
  AddressSet,
  LIST_BYTES_MAX,
  type PackedAddresses,
  parseAddressList,
  parseUsers,
  type Problem,
  problem,
  type ProxyConfig,
  type Users,
} from "../../model/serving.js";
import type { FindCredential } from "./credentials.js";
import { readBytes, readSecret } from "./files.js";

/** Contents of the files that access policies name. */
export interface LoadedAccessLists {
  /** By file; undefined if the config names none. */
  readonly lists: AccessLists | undefined;
  /** By file; undefined if the config names none. */
  readonly users: AccessUsers | undefined;
  readonly problems: readonly Problem[];
  /** Warnings, with which the service still runs. */
  readonly warnings: readonly Problem[];
}

/** Reads the files, each once. */
export async function loadAccessLists(config: ProxyConfig, find: FindCredential): Promise<LoadedAccessLists> {
  const lists: Record<string, PackedAddresses> = {};
  const users: Record<string, Users> = {};
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  for (const [file, field] of accessFiles(config)) {
    const list = await readAccessList(file, `${field} (${file})`);
    if ("problem" in list) problems.push(list.problem);
    else lists[file] = list.addresses.packed;
  }
  for (const [file, field] of userFiles(config)) {
    const read = await readUsers(file, field, find);
    problems.push(...read.problems);
    warnings.push(...read.warnings);
    if (read.users !== undefined) users[file] = read.users;
  }
  const given = <T extends object>(found: T): T | undefined =>
    Object.keys(found).length === 0 ? undefined : found;
  return { lists: given(lists), users: given(users), problems, warnings };
}

/** Reads one file of users: what was handed over in its place, or the file itself. */
export async function readUsers(
  named: string,
  field: string,
  find: FindCredential,
): Promise<{
  readonly users?: Users;
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}> {
  const { label, text, problems, warnings } = await readSecret(named, field, find);
  if (text === undefined) return { problems, warnings };
  const users = parseUsers(text, "argon2" in crypto);
  if (!("message" in users)) return { users, problems, warnings };
  const { message, ...more } = users;
  return { problems: [problem("files.bad-users", label, message, more)], warnings };
}

/** Reads one file. */
export async function readAccessList(
  file: string,
  label: string,
): Promise<{ readonly addresses: AddressSet } | { readonly problem: Problem }> {
  const read = await readBytes(file, label, { bytesMax: LIST_BYTES_MAX });
  if ("problem" in read) return read;
  const list = parseAddressList(read.bytes);
  if (list instanceof AddressSet) return { addresses: list };
  const { message, ...more } = list;
  return { problem: problem("files.bad-address-list", label, message, more) };
}

type WithPolicies = Pick<ProxyConfig, "accessPolicies">;

/** The lists of addresses, each with the field that first names it. */
export const accessFiles = (config: WithPolicies): ReadonlyMap<string, string> =>
  filesOf(config, "denyFile", ({ denyFile }) => denyFile);

/** The same of files with users. */
export const userFiles = (config: WithPolicies): ReadonlyMap<string, string> =>
  filesOf(config, "basic.usersFile", ({ basic }) => basic?.usersFile);

function filesOf(
  { accessPolicies = {} }: WithPolicies,
  field: string,
  fileOf: (policy: AccessPolicyConfig) => string | undefined,
): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [name, policy] of Object.entries(accessPolicies)) {
    const file = fileOf(policy);
    if (file !== undefined && !files.has(file)) files.set(file, `accessPolicies.${name}.${field}`);
  }
  return files;
}
