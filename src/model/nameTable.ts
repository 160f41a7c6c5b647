/** `*.example.org`: its `*` stands for exactly one label, as in a certificate (RFC 9525, 6.3). */
export const isWildcardName = (name: string): boolean => name.startsWith("*.");

/** A host name that clients could use: for a wildcard, one that it covers. */
export const sampleName = (name: string): string => name.replace("*", "portico-check");

/** The names of a list that are no wildcards, then one name for each wildcard. */
export function sampleNames(names: readonly string[]): string[] {
  const exact = names.filter((name) => !isWildcardName(name));
  return [...exact, ...names.filter(isWildcardName).map(sampleName)];
}

/**
 * Finds what belongs to a host name: by the name itself, or else by the wildcard that covers it. Virtual servers and
 * certificates are chosen by the same rule, so a server with a wildcard is reached by the names that a certificate for
 * the same wildcard covers, and by no others.
 */
export class NameTable<T> {
  private readonly byName = new Map<string, T>();

  /** Of several with one name the first has it. */
  add(names: readonly string[], value: T): void {
    for (const name of names) if (!this.byName.has(name)) this.byName.set(name, value);
  }

  /** @param name in lower case, without a dot at its end */
  find(name: string): T | undefined {
    return this.byName.get(name) ?? this.byName.get(wildcardFor(name));
  }

  /** Who has exactly this name, which may be a wildcard. */
  holder(name: string): T | undefined {
    return this.byName.get(name);
  }
}

/** `*.example.org` for `www.example.org`. */
function wildcardFor(name: string): string {
  const dot = name.indexOf(".");
  return dot < 1 ? "" : `*${name.slice(dot)}`;
}
