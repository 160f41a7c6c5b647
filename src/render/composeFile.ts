import { createHash } from "node:crypto";
import type { ProxyConfig } from "../model/index.js";
import { CONTAINER_PATHS } from "./hostPaths.js";

/** How a proxy runs beside the services of a Compose file. */
export interface ComposeServiceInput {
  readonly image: string;
  readonly config: ProxyConfig;
  /** Networks of the other file, by their keys there; none for the network that Compose makes for both. */
  readonly networks: readonly string[];
  /** More mounts, as Compose writes them. */
  readonly volumes: readonly string[];
  /** Texts by path in the container. */
  readonly files: ReadonlyMap<string, string>;
}

/** Directory beside the Compose file with the files that are mounted. */
const BESIDE = "./portico";

/** The user's number: the image has no entry for the user. */
const USER = "65532:65532";

/** How long a process may take to end when nothing runs any more. */
const EXIT_SECONDS = 10;

/** A file for `docker compose`, with the service `portico`. Its strings are written as JSON, which YAML contains. */
export function renderComposeFile({ image, config, networks, volumes, files }: ComposeServiceInput): string {
  const { healthListener, timeouts, listeners } = config;
  const ports = listeners.map(({ port, publishedPort = port }) => `${publishedPort}:${port}`);
  const mounts = [
    ...[...files.keys()].map((path) => `${BESIDE}${path}:${path}:ro`),
    ...(readsCertificates(config)
      ? [`${BESIDE}${CONTAINER_PATHS.tlsDirectory}:${CONTAINER_PATHS.tlsDirectory}:ro`]
      : []),
    ...(usesAcme(config) ? [`${STATE_VOLUME}:${CONTAINER_PATHS.stateDirectory}`] : []),
    ...volumes,
  ];
  const digest = createHash("sha256");
  for (const [path, text] of files) digest.update(`${path}\0${text}\0`);
  const grace = Math.ceil((timeouts.drainDelayMs + timeouts.drainMs) / 1000) + EXIT_SECONDS;
  return `# Written by Portico: docs/containers.md. Give it to \`docker compose\` after the application's own file.
services:
  portico:
    image: ${quoted(image)}
    restart: "unless-stopped"
    user: ${quoted(USER)}
    read_only: true
    cap_drop: ["ALL"]
    security_opt: ["no-new-privileges:true"]
    # Transfers that run may end.
    stop_grace_period: "${grace}s"
    # Another one makes a new container: the engine does not look into files that are mounted.
    labels: { "portico.files": "${digest.digest("hex").slice(0, 16)}" }
    ports:${list(ports)}
    volumes:${list(mounts)}
${usesAcme(config) ? `    environment: { "STATE_DIRECTORY": ${quoted(CONTAINER_PATHS.stateDirectory)} }\n` : ""}${networks.length === 0 ? "" : `    networks:${list(networks)}\n`}${healthListener === undefined ? "" : health(healthListener.port)}${usesAcme(config) ? STATE : ""}`;
}

const STATE_VOLUME = "portico-state";
const STATE = `# Account keys and certificates by ACME. Authorities limit how often they issue a certificate, so keep the volume.
volumes:
  ${STATE_VOLUME}: {}
`;

const certificatesOf = ({ listeners }: ProxyConfig) =>
  listeners.flatMap(({ tls }) => (tls === undefined ? [] : [tls, ...tls.certificates]));

const readsCertificates = (config: ProxyConfig): boolean =>
  certificatesOf(config).some(({ certificate }) => certificate !== undefined);

const usesAcme = (config: ProxyConfig): boolean =>
  certificatesOf(config).some(({ acme }) => acme !== undefined);

const quoted = (text: string): string => JSON.stringify(text.replaceAll("$", "$$$$"));
const list = (items: readonly string[]): string => items.map((item) => `\n      - ${quoted(item)}`).join("");

/** The image has no other program that can ask. */
function health(port: number): string {
  const program = `require("http").get("http://127.0.0.1:${port}/readyz",r=>process.exit(r.statusCode===200?0:1)).on("error",()=>process.exit(1))`;
  return `    healthcheck:
      test: ["CMD", "node", "-e", ${quoted(program)}]
      interval: "10s"
      timeout: "5s"
      start_period: "20s"
`;
}
