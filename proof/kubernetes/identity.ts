import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { eventually } from "../../testkit/waiting.js";
import type { Issued } from "../../testkit/certificates.js";
import { demand } from "./checks.js";
import { CLIENT_ADDRESSES, fetchAsClient } from "./clients.js";
import { NODE_ADDRESS } from "./cluster.js";
import { NAMESPACE, TICKET_SECRET, TLS_SECRET } from "./frontEnd.js";
import { LOAD_PATH } from "./site.js";
import type { Scene } from "./scene.js";

/** Who clients are to the upstream, and who pods are to clients. */

export async function clientAddresses(scene: Scene): Promise<string> {
  const { https } = await scene.nodePorts();
  const url = `https://${NODE_ADDRESS}:${https}${LOAD_PATH}/seen`;
  for (const address of CLIENT_ADDRESSES) await demandSeen(url, address, "--interface", address);
  return `X-Forwarded-For is ${CLIENT_ADDRESSES.join(" and ")}, as the clients connected`;
}

/** @throws unless the upstream is given this address of the client */
export async function demandSeen(url: string, address: string, ...options: readonly string[]): Promise<void> {
  const text = await fetchAsClient(url, ...options);
  const { forwardedFor } = JSON.parse(text) as { forwardedFor?: string };
  demand(forwardedFor === address, `X-Forwarded-For of ${address} is ${forwardedFor}`);
}

export function tlsSecret({ cert, key }: Issued, name = TLS_SECRET): object {
  const encoded = (text: string): string => Buffer.from(text).toString("base64");
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name, namespace: NAMESPACE },
    type: "kubernetes.io/tls",
    data: { "tls.crt": encoded(cert), "tls.key": encoded(key) },
  };
}

/** As `openssl rand -base64 48` makes it. */
export function ticketSecret(): object {
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: TICKET_SECRET, namespace: NAMESPACE },
    stringData: { secret: randomBytes(48).toString("base64") },
  };
}

/** Every pod presents the new certificate, and is the same pod as before. */
export async function changedCertificate(scene: Scene, issued: Issued): Promise<string> {
  const before = await scene.serving();
  const from = Date.now();
  await scene.cluster.apply([tlsSecret(issued)]);
  await eventually(
    async () => {
      const names = await Promise.all(before.map(({ address }) => certificateOf(address)));
      return names.every((name) => name === issued.name);
    },
    `for the certificate of ${issued.name}`,
    { ms: 60_000, everyMs: 500 },
  );
  const seconds = Math.round((Date.now() - from) / 1000);
  const after = await scene.serving();
  demand(
    before.every(({ container }) => after.some((pod) => pod.container === container)),
    "a pod was replaced",
  );
  return `presented by all ${before.length} pods after ${seconds} s, without a new pod`;
}

const PORT = 8443;

function handshake(address: string, session?: Buffer): TLSSocket {
  const options = { host: address, port: PORT, rejectUnauthorized: false };
  return connect({ ...options, session });
}

async function certificateOf(address: string): Promise<string> {
  const socket = handshake(address);
  await once(socket, "secureConnect");
  const { CN } = socket.getPeerCertificate().subject;
  socket.destroy();
  return String(CN);
}

async function sessionOf(address: string): Promise<Buffer> {
  const socket = handshake(address);
  // It may come together with the end of the handshake.
  const [session] = (await once(socket, "session")) as [Buffer];
  socket.destroy();
  return session;
}

async function resumes(address: string, session: Buffer): Promise<boolean> {
  const socket = handshake(address, session);
  await once(socket, "secureConnect");
  const reused = socket.isSessionReused();
  socket.destroy();
  return reused;
}

/** A session that one pod began continues at every other. */
export async function sharedTickets(scene: Scene): Promise<string> {
  const pods = await scene.serving();
  let resumed = 0;
  for (const first of pods) {
    const session = await sessionOf(first.address);
    for (const second of pods.filter(({ name }) => name !== first.name)) {
      const reused = await resumes(second.address, session);
      demand(reused, `${second.name} does not resume what ${first.name} began`);
      resumed++;
    }
  }
  return `${resumed} of ${resumed} sessions that one pod began were resumed by another`;
}
