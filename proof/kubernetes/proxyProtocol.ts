import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../testkit/waiting.js";
import { demand } from "./checks.js";
import { BALANCER_ADDRESS, CLIENT_ADDRESSES, fetchAsClient, runAsClient, startAsClient } from "./clients.js";
import { NODE_ADDRESS } from "./cluster.js";
import { demandSeen } from "./identity.js";
import type { Scene } from "./scene.js";
import { LOAD_HOST, LOAD_PATH } from "./site.js";

/**
 * haproxy in front of the cluster announces its clients, over TLS by version 2 of the PROXY protocol and without by
 * version 1; who announces clients from another address is not believed.
 */
export async function announcedClients(scene: Scene, folder: string): Promise<string> {
  const { http, https } = await scene.nodePorts();
  const file = join(folder, "haproxy.cfg");
  writeFileSync(file, balancerConfig(http, https));
  const balancer = startAsClient("haproxy", "-f", file, "-db");
  try {
    const url = `https://${BALANCER_ADDRESS}${LOAD_PATH}/seen`;
    await eventually(async () => (await runAsClient("curl", "-sk", url)).code === 0, "for haproxy", {
      everyMs: 100,
    });
    const plain = `http://${BALANCER_ADDRESS}${LOAD_PATH}/seen`;
    for (const address of CLIENT_ADDRESSES) {
      await demandSeen(url, address, "--interface", address);
      await demandSeen(plain, address, "--interface", address, "-H", `Host: ${LOAD_HOST}`);
    }
  } finally {
    const ended = once(balancer, "exit");
    balancer.kill();
    await ended;
  }
  await demandDisbelieved(`http://${NODE_ADDRESS}:${http}${LOAD_PATH}/seen`);
  return `X-Forwarded-For is ${CLIENT_ADDRESSES.join(" and ")}, as haproxy announced by versions 1 and 2; a header from elsewhere is refused`;
}

/** A client that is no load balancer is served, but not if it announces another. */
async function demandDisbelieved(url: string): Promise<void> {
  const [address] = CLIENT_ADDRESSES;
  const own = ["--interface", address, "-H", `Host: ${LOAD_HOST}`];
  await demandSeen(url, address, ...own);
  const status = await fetchAsClient(
    url,
    ...own,
    "--haproxy-protocol",
    "-o",
    "/dev/null",
    "-w",
    "%{http_code}",
  );
  demand(status === "400", `a PROXY header from ${address} gets ${status}`);
}

function balancerConfig(http: number, https: number): string {
  return `defaults
  mode tcp
  timeout connect 5s
  timeout client 60s
  timeout server 60s
listen tls
  bind ${BALANCER_ADDRESS}:443
  server node ${NODE_ADDRESS}:${https} send-proxy-v2
listen plain
  bind ${BALANCER_ADDRESS}:80
  server node ${NODE_ADDRESS}:${http} send-proxy
`;
}
