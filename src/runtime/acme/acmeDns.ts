import type { DnsProofsOf } from "../../model/serving.js";
import { type AcmeDnsAccount, acmeDnsAccountsIn } from "../load/dnsFiles.js";
import { AcmeError } from "./acmeError.js";
import { requiredFile } from "./stateFiles.js";
import type { TxtChange, TxtRecord } from "./dnsMessage.js";
import type { DnsProvider, Proof } from "./dnsProvider.js";
import { Transport } from "./transport.js";

/** An account has its last two values (https://github.com/acme-dns/acme-dns): for a name, and the wildcard below it. */
const VALUES_MOST = 2;

/** Tells an acme-dns server the values of its accounts; there is nothing to remove, as new values replace old ones. */
export class AcmeDns implements DnsProvider {
  constructor(private readonly config: DnsProofsOf<"acme-dns">) {}

  get nameServers() {
    return this.config.nameServers;
  }

  async records(proofs: readonly Proof[]): Promise<TxtRecord[]> {
    const account = await this.accounts();
    return proofs.map(({ name, value }) => ({ name: account(name).fulldomain, value }));
  }

  async write(change: TxtChange, records: readonly TxtRecord[], signal: AbortSignal): Promise<void> {
    if (change === "cleanup") return;
    const { accountsFile } = this.config;
    const accounts = acmeDnsAccountsIn(await requiredFile(accountsFile)) ?? new Map<string, AcmeDnsAccount>();
    for (const account of accounts.values()) {
      const own = records.filter(({ name }) => name === account.fulldomain);
      if (own.length > VALUES_MOST)
        throw new AcmeError(
          "dnsUpdate",
          `the account of ${account.fulldomain} keeps ${VALUES_MOST} values, and ${own.length} are needed: register an account for each name, and put them into ${accountsFile} by name`,
        );
    }
    for (const record of records) {
      const account = [...accounts.values()].find(({ fulldomain }) => fulldomain === record.name)!;
      await this.update(account, record.value, signal);
    }
  }

  private async update({ subdomain, username, password }: AcmeDnsAccount, txt: string, signal: AbortSignal) {
    const { url, roots: file } = this.config;
    const roots = file === undefined ? undefined : await requiredFile(file);
    const headers = { "content-type": "application/json", "x-api-user": username, "x-api-key": password };
    const transport = new Transport({ roots, signal, headers, peer: "the acme-dns server" });
    const to = `${url.replace(/\/$/, "")}/update`;
    const { status, body } = await transport
      .send("POST", to, JSON.stringify({ subdomain, txt }), true)
      .catch((error: AcmeError) => {
        if (!(error instanceof AcmeError)) throw error;
        throw new AcmeError("dnsUpdate", error.detail);
      });
    if (status === 200 && textIn(body) === txt) return;
    const known = STATUSES[status] ?? "it does not confirm the value";
    throw new AcmeError("dnsUpdate", `${to} responded with ${status}: ${known}`);
  }

  private async accounts(): Promise<(name: string) => AcmeDnsAccount> {
    const { accountsFile } = this.config;
    const accounts = acmeDnsAccountsIn(await requiredFile(accountsFile));
    if (accounts === undefined) throw new AcmeError("file", `${accountsFile} has no account of acme-dns`);
    return (name) => {
      const account = accounts.get(name.replace(/^\*\./, "")) ?? accounts.get("*");
      if (account !== undefined) return account;
      throw new AcmeError("file", `${accountsFile} has no account for ${name}`);
    };
  }
}

const STATUSES: Readonly<Record<number, string>> = {
  400: "it rejects the value or the subdomain",
  401: "it does not know the account, or this host's address is not in its `allowfrom`",
  403: "the account lacks the permission",
};

function textIn(body: string): unknown {
  try {
    return (Object(JSON.parse(body)) as { txt?: unknown }).txt;
  } catch {
    return undefined;
  }
}
