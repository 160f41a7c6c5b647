import {
  type AccessLists,
  AddressSet,
  LIST_BYTES_MAX,
  type PackedAddresses,
  parseAddressList,
  type Problem,
  problem,
  type ProxyConfig,
} from "../../model/serving.js";
import { readBytes } from "./files.js";

/** Contents of the files that access policies name. */
export interface LoadedAccessLists {
  /** By file; undefined if the config names none. */
  readonly lists: AccessLists | undefined;
  readonly problems: readonly Problem[];
}

/** Reads the files, each once. */
export async function loadAccessLists(config: ProxyConfig): Promise<LoadedAccessLists> {
  const files = accessFiles(config);
  if (files.size === 0) return { lists: undefined, problems: [] };
  const lists: Record<string, PackedAddresses> = {};
  const problems: Problem[] = [];
  for (const [file, field] of files) {
    const list = await readAccessList(file, `${field} (${file})`);
    if ("problem" in list) problems.push(list.problem);
    else lists[file] = list.addresses.packed;
  }
  return { lists, problems };
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

/** The files, each with the field that first names it. */
export function accessFiles({
  accessPolicies = {},
}: Pick<ProxyConfig, "accessPolicies">): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [name, { denyFile }] of Object.entries(accessPolicies))
    if (denyFile !== undefined && !files.has(denyFile))
      files.set(denyFile, `accessPolicies.${name}.denyFile`);
  return files;
}
