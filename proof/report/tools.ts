/** A tool that shows how reliable the proxy is: one section of docs/reliability.md each. */
export interface Tool {
  /** Name of its result. */
  readonly name: string;
  readonly title: string;
  readonly command: string;
  /** What a passed run shows. */
  readonly shows: string;
}

/** In the order of the document. A tool without a result is listed as not run. */
export const TOOLS: readonly Tool[] = [
  {
    name: "hostile",
    title: "Malformed messages and floods",
    command: "npm run hostile",
    shows:
      "Raw requests, HTTP/2 requests and answers of upstreams that parsers read differently, endless messages, and floods of HTTP/2 frames. The upstream receives only what strict and lenient parsers read alike; a canary behind each case is answered as itself or not at all; memory stays bounded; a flood ends with ENHANCE_YOUR_CALM and one line in the log.",
  },
  {
    name: "differential",
    title: "Against nginx",
    command: "npm run differential",
    shows:
      "Generated requests to real nginx on the usual config of the service and to Portico, plain and TLS, HTTP/1.1 and HTTP/2: what the upstream received and what the client got are the same, but for differences that a named rule allows.",
  },
  {
    name: "exchanges",
    title: "Generated exchanges",
    command: "npm run exchanges",
    shows:
      "Scripted clients over HTTP/1.1, TLS and HTTP/2 and a strict upstream: requests joined and split everywhere, bodies too long, too short and exact, early and broken answers, upgrades answered with everything, clients that leave. The upstream received exactly what the clients sent, each connection was used again only at a message boundary, each client got its own answer, whole or visibly cut, no worker died, and the log blamed nobody who did nothing wrong. The tool was shown to fail where a body was announced for an upgrade, a body exceeded its length by a last frame, and several chunks in one read exceeded a limit.",
  },
  {
    name: "fuzz",
    title: "Coverage-guided fuzzing",
    command: "npm run fuzz",
    shows:
      "Message heads, chunks, field blocks, frames, targets, hosts, configs and settings files, bred towards new code paths: only declared errors, the same result in whatever pieces, what is forwarded is read alike by every parser, and no input takes long.",
  },
  {
    name: "h2spec",
    title: "HTTP/2 conformance",
    command: "npm run h2spec",
    shows: "Every case of h2spec, the strict ones too, on a proxied route and on static files.",
  },
  {
    name: "node-versions",
    title: "Versions of Node",
    command: "npm run node-versions -- --without each --record",
    shows:
      "Tests of every way in and out and of the processes, on each maintained line of Node and on the oldest that is supported: without each piece of Node that has no public name alone, and without all of them.",
  },
  {
    name: "mutate",
    title: "Faults put into the sources",
    command: "npm run mutate -- --record",
    shows:
      "Single faults chosen at random over all sources (a comparison turned round, an anchor or a default left out, a step skipped): the tests notice at least 95 % of each area.",
  },
  {
    name: "webdav",
    title: "WebDAV",
    command: "npm run webdav",
    shows:
      "litmus through `/syncdav` passes what it passes directly (one test looks at the bytes of the connection: over TLS litmus leaves it out); a real client works on a tree.",
  },
  {
    name: "faults",
    title: "Faults",
    command: "npm run faults",
    shows:
      "Descriptors run out and return, disks fill, clocks jump, names change their address, upstreams hang, reset, trickle, die in the midst of an answer and come back, clients come in too large a number: requests that can be served are, each trouble is said once in the log, and all is well afterwards.",
  },
  {
    name: "breakages",
    title: "Broken hosts",
    command: "npm run breakages",
    shows:
      "A real Debian with the whole front end is broken in one way after the other, as docs/breakages.md lists them: `portico doctor` names what is wrong, clients are served what does not depend on it, and one command, or nothing at all, heals it. Applies and destroys that are broken change nothing, or are finished by the next.",
  },
  {
    name: "application",
    title: "A real application",
    command: "npm run application",
    shows: "A Django site behind the proxy, driven by a browser: login, upload, image, over TLS.",
  },
  {
    name: "tls-scan",
    title: "TLS",
    command: "npm run tls-scan",
    shows:
      "Scanners agree with the protocols and suites that are promised, and find nothing but what the policy or its certificate implies.",
  },
  {
    name: "slow-clients",
    title: "Slow and many clients",
    command: "npm run slow-clients",
    shows:
      "A well-behaved client is served within twice its usual time among thousands that send heads and bodies slowly, read slowly or ask for many ranges. Usual is what it waits while the same attack goes to a neighbour on the same machine, and 3 ms at least; judged once the slow connections stand, or as they connect where none stays; in up to three attempts.",
  },
  {
    name: "soak",
    title: "Soak",
    command: "npm run soak",
    shows:
      "Mixed load on two front ends at once, with clients that leave and upstreams that break; the first is reloaded again and again. Every answer is checked, transfers by their SHA-256; memory, sockets and descriptors do not grow.",
  },
  {
    name: "supply-chain",
    title: "Supply chain",
    command: "npm run supply-chain",
    shows: "Dependencies counted, lock file checked, the bundle reproducible, an SBOM written.",
  },
];
