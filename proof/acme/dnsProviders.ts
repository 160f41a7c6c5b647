import {
  type Answer,
  type Asked,
  isObject,
  onlyQuery,
  type Provider,
  type Records,
  unquoted,
} from "./dnsApiServer.js";

/** The APIs of four providers, as far as their documentation describes what proofs need. */

/** https://developers.cloudflare.com/api/resources/dns/subresources/records/ */
export class Cloudflare implements Provider {
  readonly type = "cloudflare";
  readonly base = "/client/v4";
  readonly token = "cf_-".repeat(10);
  private readonly ids = new Map<string, { readonly name: string; readonly value: string }>();
  private next = 1;

  constructor(
    readonly records: Records,
    private readonly zones: readonly string[],
  ) {}

  async answer({ method, path, query, authorization, body }: Asked): Promise<Answer> {
    if (!/^Bearer [\w-]{40}$/.test(authorization ?? ""))
      return this.error(400, 6003, "Invalid request headers", {
        error_chain: [{ code: 6111, message: "Invalid format for Authorization header" }],
      });
    if (authorization !== `Bearer ${this.token}`) return this.error(403, 9109, "Invalid access token");
    if (method === "GET" && path === "/zones" && onlyQuery(query, "name")) {
      const found = this.zones.filter((zone) => zone === query.get("name"));
      return this.result(found.map((name) => ({ id: zoneId(name), name, status: "active" })));
    }
    const [, id, record] = /^\/zones\/([0-9a-f]{32})\/dns_records(?:\/([0-9a-f]{32}))?$/.exec(path) ?? [];
    const zone = this.zones.find((one) => zoneId(one) === id);
    if (zone === undefined) return this.error(404, 7003, `Could not route to ${path}`);
    if (method === "GET" && record === undefined && onlyQuery(query, "type", "name.exact"))
      return this.result(this.list(query.get("name.exact")!));
    if (method === "POST" && record === undefined && query.size === 0) return this.create(zone, body);
    if (method === "DELETE" && record !== undefined && body === undefined) return this.remove(record);
    return this.error(405, 10405, "Method not allowed");
  }

  /** One that somebody else made. */
  async add(name: string, value: string): Promise<string> {
    const id = hex(this.next++);
    this.ids.set(id, { name, value });
    await this.records.set(name, [...this.records.of(name), value]);
    return id;
  }

  private list(name: string): object[] {
    return [...this.ids].flatMap(([id, one]) =>
      one.name === name
        ? [{ id, type: "TXT", name, content: `"${one.value}"`, ttl: 60, proxied: false }]
        : [],
    );
  }

  private async create(zone: string, body: unknown): Promise<Answer> {
    const { type, name, content, ttl } = Object(body) as Record<string, unknown>;
    const value = unquoted(content);
    const isIn = typeof name === "string" && name.endsWith(`.${zone}`);
    if (!isObject(body, ["type", "name", "content", "ttl"]) || type !== "TXT" || !isIn || value === undefined)
      return this.error(400, 9005, "Content for TXT record is invalid.");
    if (ttl !== 1 && !(Number(ttl) >= 60 && Number(ttl) <= 86_400))
      return this.error(400, 9021, "Invalid TTL. Must be between 60 and 86400 seconds, or 1 for Automatic.");
    if (this.list(name).some((one) => (one as { content: string }).content === content))
      return this.error(400, 81058, "An identical record already exists.");
    return this.result({ id: await this.add(name, value), type, name, content, ttl });
  }

  private async remove(id: string): Promise<Answer> {
    const found = this.ids.get(id);
    if (found === undefined) return this.error(404, 81044, "Record does not exist.");
    this.ids.delete(id);
    await this.records.set(
      found.name,
      this.records.of(found.name).filter((value) => value !== found.value),
    );
    return { status: 200, body: { result: { id } } };
  }

  private result(result: unknown): Answer {
    return { status: 200, body: { success: true, errors: [], messages: [], result } };
  }

  private error(status: number, code: number, message: string, more: object = {}): Answer {
    return {
      status,
      body: { success: false, errors: [{ code, message, ...more }], messages: [], result: null },
    };
  }
}

const hex = (number: number): string => number.toString(16).padStart(32, "0");
const zoneId = (zone: string): string => Buffer.from(zone).toString("hex").padEnd(32, "0").slice(0, 32);

/** https://desec.readthedocs.io/en/latest/dns/rrsets.html */
export class Desec implements Provider {
  readonly type = "desec";
  readonly base = "/api/v1";
  readonly token = "i-T3b1h_OI-H9ab8tRS98stGtURe";
  /** Names without the zone that the token's policy allows to write; default: all. */
  allowed: ((subname: string) => boolean) | undefined;

  constructor(
    readonly records: Records,
    private readonly domains: readonly string[],
    private readonly minimumTtl = 3_600,
  ) {}

  async answer({ method, path, query, authorization, body }: Asked): Promise<Answer> {
    if (authorization === undefined)
      return { status: 401, body: { detail: "Authentication credentials were not provided." } };
    if (authorization !== `Token ${this.token}`) return { status: 401, body: { detail: "Invalid token." } };
    if (method === "GET" && path === "/domains/" && onlyQuery(query, "owns_qname")) {
      const name = query.get("owns_qname")!;
      const owning = this.domains.filter((one) => name === one || name.endsWith(`.${one}`));
      const [longest] = owning.sort((a, b) => b.length - a.length);
      return {
        status: 200,
        body: longest === undefined ? [] : [{ name: longest, minimum_ttl: this.minimumTtl }],
      };
    }
    const [, domain, sub] = /^\/domains\/([^/]+)\/rrsets\/(?:([^/]*)\/TXT\/)?$/.exec(path) ?? [];
    if (domain === undefined || !this.domains.includes(domain) || query.size > 0)
      return { status: 404, body: { detail: "Not found." } };
    if (method === "GET" && sub !== undefined) return this.read(domain, sub.replace(/\.\.\.$|^@$/, ""));
    if (method === "PUT" && sub === undefined) return this.write(domain, body);
    return { status: 405, body: { detail: `Method "${method}" not allowed.` } };
  }

  private read(domain: string, subname: string): Answer {
    const records = this.records.of(nameOf(subname, domain)).map((value) => `"${value}"`);
    if (records.length === 0) return { status: 404, body: { detail: "Not found." } };
    return { status: 200, body: { domain, subname, type: "TXT", records, ttl: this.minimumTtl } };
  }

  private async write(domain: string, body: unknown): Promise<Answer> {
    if (!Array.isArray(body))
      return { status: 400, body: { non_field_errors: ["Expected a list of items."] } };
    const problems = body.map((one: Record<string, unknown>) => {
      if (!isObject(one, ["subname", "type", "ttl", "records"]))
        return { non_field_errors: ["This field is required, or unknown."] };
      if (typeof one["ttl"] !== "number" || one["ttl"] < this.minimumTtl)
        return { ttl: [`Ensure this value is greater than or equal to ${this.minimumTtl}.`] };
      const records = one["records"] as unknown[];
      if (
        new Set(records).size !== records.length ||
        records.some((record) => unquoted(record) === undefined)
      )
        return { records: ["Record content malformed: Data for TXT records must be given in quotes, once."] };
      return {};
    });
    if (problems.some((problem) => Object.keys(problem).length > 0)) return { status: 400, body: problems };
    for (const { subname } of body as { subname: string }[])
      if (this.allowed?.(subname) === false)
        return { status: 403, body: { detail: "You do not have permission to perform this action." } };
    for (const { subname, records } of body as { subname: string; records: string[] }[])
      await this.records.set(
        nameOf(subname, domain),
        records.map((record) => unquoted(record)!),
      );
    return { status: 200, body };
  }
}

const nameOf = (sub: string, zone: string): string => (sub === "" ? zone : `${sub}.${zone}`);

/** https://www.duckdns.org/spec.jsp */
export class DuckDns implements Provider {
  readonly type = "duckdns";
  readonly base = "";
  readonly token = "a7c4d0ad-114e-40ef-ba1d-d217904a50f2";

  /** @param names below a domain for which somebody asks: they all have its one value */
  constructor(
    readonly records: Records,
    private readonly names: Readonly<Record<string, readonly string[]>>,
  ) {}

  async answer({ method, path, query, authorization }: Asked): Promise<Answer> {
    const { records, names, token } = this;
    const isCall = method === "GET" && path === "/update" && authorization === undefined;
    const below = names[query.get("domains") ?? ""];
    const known = onlyQuery(query, "domains", "token", "txt") || query.get("clear") === "true";
    if (!isCall || !known || below === undefined || query.get("token") !== token)
      return { status: 200, body: "KO" };
    for (const name of below) await records.set(name, query.has("clear") ? [] : [query.get("txt")!]);
    return { status: 200, body: "OK" };
  }
}

/** https://docs.hetzner.cloud/reference/cloud#zone-rrset-actions */
export class Hetzner implements Provider {
  readonly type = "hetzner";
  readonly base = "/v1";
  readonly token = "h".repeat(64);
  readonly ttls = new Map<string, number | null>();
  /** Changes that have not been made yet, by the action's id. */
  private readonly running = new Map<number, () => Promise<void>>();
  private next = 1;

  constructor(
    readonly records: Records,
    private readonly zones: readonly string[],
  ) {}

  async answer({ method, path, query, authorization, body }: Asked): Promise<Answer> {
    if (authorization !== `Bearer ${this.token}`) return error(401, "unauthorized", "unable to authenticate");
    if (method === "GET" && path === "/zones" && onlyQuery(query, "name")) {
      const found = this.zones.filter((zone) => zone === query.get("name"));
      const zones = found.map((name) => ({
        id: this.zones.indexOf(name) + 42,
        name,
        mode: "primary",
        ttl: 3_600,
      }));
      return { status: 200, body: { zones, meta: { pagination: { page: 1, total_entries: zones.length } } } };
    }
    const action = /^\/actions\/(\d+)$/.exec(path)?.[1];
    if (method === "GET" && action !== undefined) return this.action(Number(action));
    const [, id, sub, verb] =
      /^\/zones\/(\d+)\/rrsets\/([^/]+)\/TXT(?:\/actions\/(\w+_records))?$/.exec(path) ?? [];
    const zone = this.zones[Number(id) - 42];
    if (zone === undefined || query.size > 0) return error(404, "not_found", "zone not found");
    const name = nameOf(sub === "@" ? "" : sub!, zone);
    if (method === "GET" && verb === undefined) return this.read(name, sub!);
    if (method === "POST" && verb === "add_records") return this.add(name, body);
    if (method === "POST" && verb === "remove_records") return this.remove(name, body);
    return error(405, "method_not_allowed", "method not allowed");
  }

  private read(name: string, sub: string): Answer {
    const records = this.records.of(name).map((value) => ({ value: `"${value}"`, comment: "" }));
    if (records.length === 0) return error(404, "not_found", "rrset not found");
    const ttl = this.ttls.get(name) ?? null;
    return { status: 200, body: { rrset: { id: `${sub}/TXT`, name: sub, type: "TXT", ttl, records } } };
  }

  private add(name: string, body: unknown): Answer {
    if (!isObject(body, ["records"], ["ttl"])) return error(422, "invalid_input", "unknown field");
    const { records, ttl = null } = body as { records: { value: string }[]; ttl?: number | null };
    const values = records.map(({ value }) => unquoted(value));
    const before = this.records.of(name);
    if (values.length === 0 || values.includes(undefined))
      return error(422, "invalid_input", "invalid input in field 'records': a TXT value has to be quoted");
    const twice = records.find((_, i) => before.includes(values[i]!));
    if (twice !== undefined) return error(422, "invalid_input", `duplicate value '${twice.value}'`);
    if (before.length > 0 && ttl !== null && ttl !== (this.ttls.get(name) ?? null))
      return error(422, "invalid_input", "the TTL differs from that of the RRSet");
    return this.start("add_rrset_records", async () => {
      if (before.length === 0) this.ttls.set(name, ttl);
      await this.records.set(name, [...this.records.of(name), ...(values as string[])]);
    });
  }

  private remove(name: string, body: unknown): Answer {
    if (!isObject(body, ["records"])) return error(422, "invalid_input", "unknown field");
    const gone = (body as { records: { value: string }[] }).records.map(({ value }) => unquoted(value));
    const before = this.records.of(name);
    if (before.length === 0) return error(404, "not_found", "rrset not found");
    return this.start("remove_rrset_records", () =>
      this.records.set(
        name,
        before.filter((value) => !gone.includes(value)),
      ),
    );
  }

  private start(command: string, change: () => Promise<void>): Answer {
    const id = this.next++;
    this.running.set(id, change);
    return { status: 201, body: { action: { id, command, status: "running", progress: 0, error: null } } };
  }

  private async action(id: number): Promise<Answer> {
    await this.running.get(id)?.();
    return { status: 200, body: { action: { id, status: "success", progress: 100, error: null } } };
  }
}

const error = (status: number, code: string, message: string): Answer => ({
  status,
  body: { error: { code, message, details: null } },
});
