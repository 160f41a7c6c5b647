import type { WantedCertificate } from "../../model/serving.js";
import { CertificateSharing } from "../../runtime/acme/sharing.js";
import { listenProblem } from "../../runtime/listen/sockets.js";
import { credentials } from "../../runtime/load/credentials.js";
import { stateOfAll } from "../../runtime/load/fileWatch.js";
import { readTrusted } from "../../runtime/files/trustedFile.js";
import { wantedCertificates } from "../../runtime/load/wantedCertificates.js";
import { acmeDirectory } from "../../runtime/supervisor/served/certificateManager.js";
import { readDocument } from "../document.js";
import { EXIT, type CommandOutput, problemsText } from "../output.js";

export interface ShareFlags {
  own: string;
  peer: string;
  port: number;
  key: string;
  state?: string;
}

/** Shares certificates with the other host of a pair; runs until it is stopped. */
export async function share(
  file: string,
  { own, peer, port, key, state }: ShareFlags,
  output: CommandOutput,
): Promise<number> {
  const directory = acmeDirectory(state);
  if (directory === undefined) {
    output.err("there is no directory for certificates: give --state DIR\n");
    return EXIT.usage;
  }
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"]) process.once(signal, () => stop.abort());
  const config = new Config(file, output);
  const programs = await stateOfAll(PROGRAMS);
  await new CertificateSharing({
    link: { own, peer, port, key: await keyIn(key) },
    directory,
    wanted: async () => {
      // A deployment has replaced the runtime: systemd starts the new one.
      if ((await stateOfAll(PROGRAMS)) !== programs) stop.abort();
      return config.wanted();
    },
    log: (line) => output.out(`${line}\n`),
    cannotListen: (error) => listenProblem(error, "copyPort", { address: own, port }),
  }).run(stop.signal);
  return EXIT.ok;
}

const PROGRAMS = [process.execPath, process.argv[1]!];

/** The current config; an unusable config changes nothing. */
class Config {
  private state = "";
  private last: readonly WantedCertificate[] = [];

  constructor(
    private readonly file: string,
    private readonly output: CommandOutput,
  ) {}

  async wanted(): Promise<readonly WantedCertificate[]> {
    const state = await stateOfAll([this.file]);
    if (state === this.state) return this.last;
    this.state = state;
    const read = await readDocument(this.file);
    if (read.ok) this.last = wantedCertificates(read.value);
    else this.output.err(problemsText(this.file, read.problems));
    return this.last;
  }
}

async function keyIn(named: string): Promise<Buffer> {
  const find = await credentials();
  const key = Buffer.from(
    (await readTrusted((await find(named)) ?? named)).bytes.toString("latin1"),
    "base64",
  );
  if (key.length < KEY_BYTES_MIN)
    throw new Error(`${named} is too short: a secret has at least ${KEY_BYTES_MIN} bytes`);
  return key;
}

const KEY_BYTES_MIN = 32;
