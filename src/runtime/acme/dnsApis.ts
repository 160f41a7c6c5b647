import type { DnsApiName } from "../../model/serving.js";

/**
 * The APIs of DNS providers, as data for `DnsApi`. In a text, `{name}` stands for a value: the record's name, the
 * `value`, the `zone`, its `zoneId`, `sub` (the name without the zone), the `ttl`, the `values` that the name keeps, the
 * `token`, the `id` of a record or of an action.
 */

export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
}

/** The path of a value in a response in JSON: `result.0.id`. */
type JsonPath = string;

export interface DnsApiDescription {
  readonly title: string;
  readonly url: string;
  readonly authorization?: string;
  /** What the token has to be, for a person. */
  readonly token: string;
  /** How the zone is found: below a domain of the provider, or by a request, perhaps for each `{suffix}` of the name. */
  readonly zone:
    | { readonly below: string }
    | {
        readonly path: string;
        readonly name: JsonPath;
        readonly id?: JsonPath;
        readonly ttl?: JsonPath;
      };
  /** How the values of a name are read; absent if they cannot be. 404 says that there are none. */
  readonly records?: {
    readonly path: string;
    readonly list: JsonPath;
    /** The value of a record in the list; default: the record is the value. */
    readonly value?: JsonPath;
    readonly id?: JsonPath;
    /** All records of a name have one, where it is no field of a record. */
    readonly ttl?: JsonPath;
  };
  readonly present: Call;
  readonly cleanup: Call;
  /** What the response in text begins with on success, and on refusal of the token. */
  readonly says?: { readonly done?: RegExp; readonly badToken: RegExp };
  /** A write goes on after its response. */
  readonly action?: { readonly path: string; readonly id: JsonPath; readonly status: JsonPath };
  /** The values of an error response with the provider's words. */
  readonly words: readonly JsonPath[];
  readonly ttlSeconds: number;
}

const ALL_VALUES: Call = {
  method: "PUT",
  path: "/domains/{zone}/rrsets/",
  body: [{ subname: "{sub}", type: "TXT", ttl: "{ttl}", records: "{values}" }],
};

export const DNS_APIS: Readonly<Record<DnsApiName, DnsApiDescription>> = {
  // https://developers.cloudflare.com/api/resources/dns/subresources/records/
  cloudflare: {
    title: "Cloudflare",
    url: "https://api.cloudflare.com/client/v4",
    authorization: "Bearer {token}",
    token: "an API token (not the global API key) with the permission Zone, DNS, Edit for the zone",
    zone: { path: "/zones?name={suffix}", name: "result.0.name", id: "result.0.id" },
    records: {
      path: "/zones/{zoneId}/dns_records?type=TXT&name.exact={name}",
      list: "result",
      value: "content",
      id: "id",
    },
    present: {
      method: "POST",
      path: "/zones/{zoneId}/dns_records",
      body: { type: "TXT", name: "{name}", content: '"{value}"', ttl: "{ttl}" },
    },
    cleanup: { method: "DELETE", path: "/zones/{zoneId}/dns_records/{id}" },
    // A token of a wrong form is a bad request there.
    says: { badToken: /"code":\s*(?:6003|6111|9109|1000[01])\b/ },
    words: ["errors.0.error_chain.0.message", "errors.0.message"],
    ttlSeconds: 60,
  },
  // https://desec.readthedocs.io/en/latest/dns/rrsets.html: all values of a name are written together.
  desec: {
    title: "deSEC",
    url: "https://desec.io/api/v1",
    authorization: "Token {token}",
    token: "a token whose policy allows to write TXT records of _acme-challenge in the domain",
    zone: { path: "/domains/?owns_qname={name}", name: "0.name", ttl: "0.minimum_ttl" },
    records: { path: "/domains/{zone}/rrsets/{sub}.../TXT/", list: "records" },
    present: ALL_VALUES,
    cleanup: ALL_VALUES,
    words: ["detail", "0.non_field_errors.0", "0.records.0", "0.ttl.0", "0.subname.0", "non_field_errors.0"],
    ttlSeconds: 3_600,
  },
  // https://www.duckdns.org/spec.jsp: one value for a domain and all names below it, which no request reads.
  duckdns: {
    title: "DuckDNS",
    url: "https://www.duckdns.org",
    token: "the token of the account that has the domain",
    zone: { below: "duckdns.org" },
    present: { method: "GET", path: "/update?domains={zone}&token={token}&txt={value}" },
    cleanup: { method: "GET", path: "/update?domains={zone}&token={token}&txt={value}&clear=true" },
    says: { done: /^OK/, badToken: /^KO/ },
    words: [],
    ttlSeconds: 60,
  },
  // https://docs.hetzner.cloud/reference/cloud#zone-rrset-actions (not the API of dns.hetzner.com, which has ended)
  hetzner: {
    title: "Hetzner",
    url: "https://api.hetzner.cloud/v1",
    authorization: "Bearer {token}",
    token: "an API token with Read & Write of the project in the Hetzner Console that has the zone",
    zone: { path: "/zones?name={suffix}", name: "zones.0.name", id: "zones.0.id" },
    records: {
      path: "/zones/{zoneId}/rrsets/{sub}/TXT",
      list: "rrset.records",
      value: "value",
      ttl: "rrset.ttl",
    },
    present: {
      method: "POST",
      path: "/zones/{zoneId}/rrsets/{sub}/TXT/actions/add_records",
      body: { records: [{ value: '"{value}"' }], ttl: "{ttl}" },
    },
    cleanup: {
      method: "POST",
      path: "/zones/{zoneId}/rrsets/{sub}/TXT/actions/remove_records",
      body: { records: [{ value: '"{value}"' }] },
    },
    action: { path: "/actions/{id}", id: "action.id", status: "action.status" },
    words: ["error.message", "action.error.message"],
    ttlSeconds: 60,
  },
};
