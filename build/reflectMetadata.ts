/**
 * The part of the metadata API (a proposal that never became standard) that the dependency container of
 * `@peculiar/x509` asks for at load time. Import it before that package.
 */
const tables = new WeakMap<object, Map<unknown, unknown>>();

const metadata = {
  defineMetadata(key: unknown, value: unknown, target: object): void {
    const table = tables.get(target) ?? new Map<unknown, unknown>();
    tables.set(target, table.set(key, value));
  },
  getOwnMetadata(key: unknown, target: object): unknown {
    return tables.get(target)?.get(key);
  },
  getMetadata(key: unknown, target: object): unknown {
    for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at)) {
      if (tables.get(at)?.has(key) === true) return tables.get(at)!.get(key);
    }
    return undefined;
  },
};

for (const [name, value] of Object.entries(metadata)) {
  if (!(name in Reflect)) Object.defineProperty(Reflect, name, { value, configurable: true, writable: true });
}
