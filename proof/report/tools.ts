/** A tool that shows how reliable the proxy is; each is one section of docs/reliability.md. */
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
      "Raw requests, HTTP/2 requests and upstream answers that parsers read differently, endless messages, and floods of HTTP/2 frames. The upstream receives only messages that strict and lenient parsers read in the same way; a canary request after each case gets its own answer or none; memory stays bounded; a flood ends with ENHANCE_YOUR_CALM and one line in the log.",
  },
  {
    name: "differential",
    title: "Against nginx",
    command: "npm run differential",
    shows:
      "Generated requests to real nginx with the usual config of the service and to Portico, plain and TLS, HTTP/1.1 and HTTP/2: the upstream receives the same and the client gets the same, except for differences that a named rule allows.",
  },
  {
    name: "exchanges",
    title: "Generated exchanges",
    command: "npm run exchanges",
    shows:
      "Scripted clients over HTTP/1.1, TLS and HTTP/2 and a strict upstream: requests joined and split at any byte, bodies that are too long, too short or exact, early, late and broken answers, upgrades with every kind of answer, files, full queues, upstreams that never accept, reloads in the middle, clients that leave, clients that send as many small pieces as they can. The upstream received exactly what the clients sent, connections were reused only at a message boundary, each client got its own answer, complete or visibly cut off, no worker died, the event loop did not stand still, and the log blamed no client or upstream without reason. After every batch the proxy held what it had held before: descriptors, connections, requests, streams, places in queues, open files, memory on loan. To test the tool, past faults were put back, and it failed for each: a body announced for an upgrade, a body that exceeded its length by a last frame, several chunks in one read that exceeded a limit, a file left open by a refused request, a refused request that waited for a connection and got one, content after the head of an answer to HEAD, frames after a GOAWAY, uploads in chunks of one byte, a client that has all connections, and a tunnel that no upstream opened.",
  },
  {
    name: "fuzz",
    title: "Coverage-guided fuzzing",
    command: "npm run fuzz",
    shows:
      "Message heads, chunks, field blocks, frames, targets, hosts, configs and settings files, guided towards new code paths: only declared errors occur, the result does not depend on how the input is split, every parser reads what is forwarded in the same way, and no input takes long.",
  },
  {
    name: "h2spec",
    title: "HTTP/2 conformance",
    command: "npm run h2spec",
    shows: "Every case of h2spec, including the strict ones, on a proxied route and on static files.",
  },
  {
    name: "node-versions",
    title: "Versions of Node",
    command: "npm run node-versions -- --without each --record",
    shows:
      "The tests of all protocols and of the processes, on each maintained line of Node and on the oldest supported version: without each single piece of Node that has no public name, and without all of them.",
  },
  {
    name: "mutate",
    title: "Faults put into the sources",
    command: "npm run mutate -- --record",
    shows:
      "Single faults chosen at random in all sources (a comparison reversed, an anchor or a default left out, a step skipped): in each area, the tests notice at least 95 % of them.",
  },
  {
    name: "webdav",
    title: "WebDAV",
    command: "npm run webdav",
    shows:
      "litmus passes the same tests through `/syncdav` as without the proxy (over TLS litmus skips one test, which looks at the bytes of the connection); a real client works on a tree.",
  },
  {
    name: "faults",
    title: "Faults",
    command: "npm run faults",
    shows:
      "Descriptors run out and become free again, disks fill up, clocks jump, names change their address, upstreams hang, reset, trickle, die in the middle of an answer and come back, too many clients connect: requests that can be served are served, each problem is logged once, and everything works afterwards.",
  },
  {
    name: "breakages",
    title: "Broken hosts",
    command: "npm run breakages",
    shows:
      "A real Debian with the whole front end is broken in all the ways that docs/breakages.md lists: `portico doctor` names what is wrong, everything that does not depend on it is still served, and one command fixes it, if the host does not fix it by itself. Applies and destroys that are broken change nothing, or the next run finishes them.",
  },
  {
    name: "pair",
    title: "A pair of hosts",
    command: "npm run pair",
    shows:
      "Two Debian hosts with keepalived, deployed over ssh by Terraform, and a request every 10 ms to the address that they share: the holder's master is killed, its proxy stops, its network is cut. The other host answers within a second, and transfers through it go on. Both are upgraded without a request lost. Terraform's state holds no secret, and a destroy leaves nothing.",
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
      "Scanners confirm the promised protocols and suites, and find nothing except what follows from the policy or its certificate.",
  },
  {
    name: "slow-clients",
    title: "Slow and many clients",
    command: "npm run slow-clients",
    shows:
      "A well-behaved client is served within twice its usual time among thousands that send heads and bodies slowly, read slowly or ask for many ranges. The usual time is measured while another proxy on the same machine is attacked in the same way, and is at least 3 ms. The comparison is made once the slow connections are open or, if none stay open, while they connect; in up to three attempts.",
  },
  {
    name: "soak",
    title: "Soak",
    command: "npm run soak",
    shows:
      "Mixed load on two front ends at once, with clients that leave and upstreams that break; the first is reloaded again and again. Every answer is checked, transfers by SHA-256; memory, sockets and descriptors do not grow.",
  },
  {
    name: "kubernetes",
    title: "In a Kubernetes cluster",
    command: "npm run kubernetes",
    shows:
      "A real Kubernetes of one node, with the manifests of `KubernetesFrontEnd`. While transfers of a minute and small requests run over HTTP/1.1, TLS and HTTP/2, a config is rolled out, a bad one is tried and undone, pods are added, removed and deleted, a certificate changes, and containerd and the kubelet are killed: nothing is cut, nothing fails. A pod whose process is killed cannot finish its uploads; those of the others do. One node shows nothing of a network between nodes, and its network plugin enforces no NetworkPolicy.",
  },
  {
    name: "supply-chain",
    title: "Supply chain",
    command: "npm run supply-chain",
    shows:
      "Dependencies are counted, the lock file is checked, the bundle is reproducible, and an SBOM is written.",
  },
];
