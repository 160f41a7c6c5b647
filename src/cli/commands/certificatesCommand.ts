import { DAY_MS } from "../../model/text/duration.js";
import type { Command } from "commander";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import { isoMinutes, type ListedCertificate } from "../../runtime/supervisor/control/certificateList.js";
import { CONTROL_SOCKET } from "../../render/hostPaths.js";
import { printOutcome, withControl } from "./controlOptions.js";
import { DEFAULT_FILE } from "../document.js";
import { wholeNumber } from "../options.js";
import type { ShareFlags } from "./shareCommand.js";
import { EXIT, json, type CommandOutput, tableText } from "../output.js";

interface ListFlags {
  control: string;
  timeout: number;
  json?: boolean;
}

export function addCertificates(program: Command, output: CommandOutput, done: (code: number) => void): void {
  const certificates = withControl(program.command("certificates"))
    .description("show the certificates that the running portico serves, and their next renewals")
    .addHelpText(
      "after",
      `
SOURCE is the file of the certificate, an ACME authority, or temporary. A temporary certificate serves until the
authority has issued the configured one: it is self-signed, or was issued earlier for other names.
For a certificate by ACME, the command shows the last failure, its fix, and the time of the next attempt. If the config
has a holderAddress, only the host with this address asks the authority, and the other hosts wait for the address. With
--json, times are in milliseconds since 1970.

Examples:
  portico certificates
  portico certificates renew                     request all ACME certificates again now
  portico certificates renew files.example.org   request only the certificate with this name

Exit codes: 0 every certificate is valid, 1 a certificate is temporary or has expired, or portico does not respond,
2 wrong usage.`,
    )
    .action(async (flags: ListFlags) => done(await list(flags, output)));
  withControl(certificates.command("renew"))
    .argument("[NAME]", "one of the names of the certificate (default: all certificates by ACME)")
    .description("request new certificates now, within the limits of the authority")
    .addHelpText(
      "after",
      `
Waits until the authority issues or refuses the certificate. After a refusal the command prints the reason, the exit
code is 1, and the proxy keeps its present certificate. The proxy renews certificates without this command: use the
command after you have removed the cause of a failure.

Examples:
  portico certificates renew
  portico certificates renew files.example.org --control ${CONTROL_SOCKET}`,
    )
    .action(async (name: string | undefined, _flags: unknown, command: Command) => {
      // Both commands have these options, and commander gives a value to the outer one.
      const { control, timeout, json: asJson } = command.optsWithGlobals<ListFlags>();
      const request = { command: "renew", name } as const;
      const outcome = await askMaster(control, request, timeout * 1000);
      done(printOutcome(outcome, "renewal", output, asJson));
    });
  // Hidden, because only portico-copies.service of a pair runs it.
  certificates
    .command("share", { hidden: true })
    .argument("[FILE]", "the config", DEFAULT_FILE)
    .description("copy certificates by ACME between the hosts of a pair, until stopped")
    .requiredOption("--own <ADDRESS>", "this host's own address")
    .requiredOption("--peer <ADDRESS>", "the other host's address")
    .requiredOption("--port <PORT>", "TCP port of both hosts", wholeNumber(1, 65_535))
    .requiredOption("--key <FILE>", "file with the secret of both hosts, in base64")
    .option("--state <DIR>", "directory for certificates by ACME (default: $STATE_DIRECTORY)")
    .action(async (file: string, flags: ShareFlags) => {
      const { share } = await import("./shareCommand.js");
      done(await share(file, flags, output));
    });
}

async function list({ control, timeout, json: asJson }: ListFlags, output: CommandOutput): Promise<number> {
  const outcome = await askMaster(control, { command: "certificates" }, timeout * 1000);
  if (!outcome.ok) return printOutcome(outcome, "certificates", output, asJson);
  const { certificates = [] } = outcome.value;
  const now = Date.now();
  const ok = certificates.every(({ source, notAfter }) => source !== "temporary" && notAfter > now);
  output.out(asJson === true ? json({ ok, certificates }) : listText(certificates, now));
  return ok ? EXIT.ok : EXIT.failed;
}

/** A row for each, and below it the details of a failure. */
function listText(certificates: readonly ListedCertificate[], now: number): string {
  if (certificates.length === 0) return "no certificates: there is no https listener\n";
  const rows = certificates.map((one) => [
    one.names.join(" "),
    one.issuer,
    daysLeft(one.notAfter, now),
    sourceText(one),
    nextText(one, now),
  ]);
  const lines = tableText([["NAMES", "ISSUER", "DAYS LEFT", "SOURCE", "NEXT ATTEMPT"], ...rows]);
  return lines[0]! + certificates.map((one, i) => lines[i + 1]! + failureText(one, now)).join("");
}

const daysLeft = (notAfter: number, now: number): string =>
  notAfter <= now ? "expired" : String(Math.floor((notAfter - now) / DAY_MS));

const sourceText = ({ source, from }: ListedCertificate): string =>
  source === "files" ? from : source === "acme" ? `ACME (${from})` : `temporary, until ${from} issues one`;

function nextText({ state, nextAttempt, waitsFor }: ListedCertificate, now: number): string {
  if (waitsFor !== undefined) return `waiting for the address ${waitsFor}`;
  if (state === "ordering") return "under way";
  if (nextAttempt === undefined) return "-";
  return nextAttempt <= now ? "now" : isoMinutes(nextAttempt);
}

function failureText({ names, lastError, nextAttempt = 0 }: ListedCertificate, now: number): string {
  if (lastError === undefined) return "";
  const { message, fix, at } = lastError;
  const then = nextAttempt > now ? `  then: portico certificates renew ${names[0]}\n` : "";
  return `  last error, ${agoText(now - at)}: ${message}\n  fix: ${fix}\n${then}`;
}

function agoText(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000));
  if (minutes < 120) return `${minutes} min ago`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ago` : `${Math.floor(hours / 24)} days ago`;
}
