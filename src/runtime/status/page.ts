import { type Box, curve, cut, layout, LINE, PAD, TOP } from "../../model/review/graphLayout.js";
import { markup, type Markup } from "./markup.js";
import type {
  ListedTransfer,
  Overview,
  OverviewCertificate,
  OverviewEvent,
  OverviewServer,
  OverviewUpstream,
  Topology,
  TopologyEdge,
  Traffic,
} from "./overview.js";
import { stateWords, faultsOf, wellText } from "../../model/faults.js";
import { bytesText, countText, daysText, durationText, plural, timeText } from "../../model/numberTexts.js";

/** The page's own files, relative to the page. */
export interface PageLinks {
  readonly script: string;
  readonly style: string;
  readonly icon: string;
}

/** Seconds after which a browser without JavaScript loads it again. */
const RELOAD_SECONDS = 5;

/** The whole page: every fact is in it, and its script only puts newer ones in their place. */
export function statusPage(overview: Overview, links: PageLinks): string {
  const { transfers, moreTransfers, upstreams, certificates, events, topology, at } = overview;
  const running = transfers.length + moreTransfers;
  return markup`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title(overview)}</title>
<link rel="icon" href="${links.icon}">
<link rel="stylesheet" href="${links.style}">
<noscript><meta http-equiv="refresh" content="${RELOAD_SECONDS}"></noscript>
<script src="${links.script}" defer></script>
</head>
<body>
<header><h1>Portico</h1>${about(overview)}</header>
<main id="live">
${standing(overview)}
${traffic(overview.traffic)}
<section aria-labelledby="h-transfers"><h2 id="h-transfers">In progress <span class="count">${countText(running)}</span></h2>${transfersTable(overview)}</section>
<section aria-labelledby="h-topology"><h2 id="h-topology">Map of routes</h2>
${topologyMap(topology)}
<details><summary>In words</summary><ul id="topology-words">${topologyWords(topology).map((words) => markup`<li>${words}</li>`)}</ul></details></section>
<div class="pair">
<section aria-labelledby="h-upstreams"><h2 id="h-upstreams">Upstream servers</h2>${upstreamsTable(upstreams)}</section>
<section aria-labelledby="h-certificates"><h2 id="h-certificates">Certificates</h2>${certificatesTable(certificates)}</section>
</div>
<section aria-labelledby="h-events"><h2 id="h-events">Reloads and errors</h2>${eventsList(events, at)}</section>
</main>
<footer><p id="updated">As of <time datetime="${new Date(at).toISOString()}">${timeText(at)}</time></p></footer>
</body>
</html>
`.text;
}

function title(overview: Overview): string {
  const troubles = faultsOf(overview);
  return troubles.length === 0
    ? `Portico: ${wellText(overview)}`
    : `Portico: ${plural(troubles.length, "trouble")}`;
}

function about({ version, at, since, generation, workers, listeners }: Overview): Markup {
  return markup`<p id="about">${listeners.join(" · ")}<br>Release ${version}, up for ${durationText(at - since)}, generation ${generation}, ${plural(workers.running, "worker")}</p>`;
}

/** Whether all is well, in one place; spoken when it changes. */
function standing(overview: Overview): Markup {
  const troubles = faultsOf(overview);
  const list = troubles.map(
    ({ level, text, fix }) =>
      markup`<li class="${level}"><span class="hidden">${level === "error" ? "Error: " : "Warning: "}</span>${text}.${fix !== undefined && markup` <span class="sub">${fix}</span>`}</li>`,
  );
  return markup`<div id="standing" aria-live="polite">${
    troubles.length === 0
      ? markup`<p class="well">${wellText(overview)}.</p>`
      : markup`<ul class="troubles">${list}</ul>`
  }</div>`;
}

function traffic({ requests, bytesIn, bytesOut, connections, history }: Traffic): Markup {
  const { periods, everyMs } = history;
  const span = durationText(periods * everyMs);
  const mostRequests = roundTop(history.requests);
  const mostBytes = roundTop([...history.bytesIn, ...history.bytesOut]);
  const requestsLabel = `Requests a second in the last ${span}: ${countText(requests)} now, ${countText(Math.max(requests, ...history.requests))} at most`;
  const bytesLabel = `Bytes a second in the last ${span}: ${bytesText(bytesIn)} in and ${bytesText(bytesOut)} out now, ${bytesText(Math.max(bytesIn, ...history.bytesIn))} in and ${bytesText(Math.max(bytesOut, ...history.bytesOut))} out at most`;
  return markup`<section class="pair" aria-label="Traffic">
<figure><figcaption><span class="label">Requests</span><span class="figures"><b>${countText(requests)}</b>/s<span class="sub">${plural(connections, "connection")} open</span></span></figcaption>
${framed(plot([{ name: "requests", values: history.requests }], periods, mostRequests, requestsLabel), mostRequests === 0 ? "" : `${countText(mostRequests)}/s`, span)}</figure>
<figure><figcaption><span class="label">Bytes</span><span class="figures"><span class="key key1" aria-hidden="true"></span><b>${bytesText(bytesIn)}</b>/s in <span class="key key2" aria-hidden="true"></span><b>${bytesText(bytesOut)}</b>/s out</span></figcaption>
${framed(
  plot(
    [
      { name: "in", values: history.bytesIn },
      { name: "out", values: history.bytesOut },
    ],
    periods,
    mostBytes,
    bytesLabel,
  ),
  mostBytes === 0 ? "" : `${bytesText(mostBytes)}/s`,
  span,
)}</figure>
</section>`;
}

const framed = (picture: Markup, top: string, span: string): Markup =>
  markup`<div class="frame"><span class="top" aria-hidden="true">${top}</span>${picture}<span class="ends" aria-hidden="true"><span>${span} ago</span><span>now</span></span></div>`;

interface PlotLine {
  readonly name: string;
  /** The oldest first; fewer than the plot has room for are at its right end. */
  readonly values: readonly number[];
}

const [WIDTH, HEIGHT] = [600, 96];

/**
 * Lines over time, the area below the first one filled. It fills the available width. The numbers are beside it, and in
 * `label` for screen readers.
 */
function plot(lines: readonly PlotLine[], periods: number, top: number, label: string): Markup {
  const step = WIDTH / Math.max(1, periods - 1);
  const high = top === 0 ? 1 : top;
  return markup`<svg class="plot" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">
<path class="grid" d="M0 0.5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}"/>
${lines.map(({ values }, i) => {
  const first = WIDTH - (values.length - 1) * step;
  const points = values.map(
    (value, at) => `${rounded(first + at * step)} ${rounded(HEIGHT - 1 - (value / high) * (HEIGHT - 3))}`,
  );
  if (points.length < 2) return undefined;
  const line = `M${points.join("L")}`;
  const area = markup`<path class="area" d="${line}L${WIDTH} ${HEIGHT}L${rounded(first)} ${HEIGHT}Z"/>`;
  return markup`${i === 0 && area}<path class="line line${i + 1}" d="${line}"/>`;
})}
</svg>`;
}

const rounded = (value: number): string => String(Math.round(value * 10) / 10);

/** A round number that no value is above: 1, 2 or 5 and zeros. */
function roundTop(values: readonly number[]): number {
  const most = Math.max(0, ...values);
  if (most === 0) return 0;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((factor) => factor * power).find((one) => one >= most * 0.999_999)!;
}

/** A map that is higher than a screen would push the rest of the page out of sight. */
function topologyMap(topology: Topology): Markup {
  const picture = markup`<div class="scroll" role="group" aria-label="Picture of it" tabindex="0">${topologyPicture(topology)}</div>`;
  const rows = Math.max(0, ...topology.columns.map(({ nodes }) => nodes.length));
  return rows > MAP_ROWS_MAX ? markup`<details><summary>As a picture</summary>${picture}</details>` : picture;
}

const MAP_ROWS_MAX = 16;

/** The topology with the traffic on its arrows, and a text below for screen readers. */
function topologyPicture(topology: Topology): Markup {
  const { boxes, headings, width, height } = layout(topology);
  const byId = new Map(boxes.map((box) => [box.node.id, box]));
  const trouble = new Set(
    topology.columns.flatMap(({ nodes }) => nodes.filter((node) => node.trouble).map(({ id }) => id)),
  );
  const ends = ({ from, to }: TopologyEdge): [Box, Box] => [byId.get(from)!, byId.get(to)!];
  return markup`<svg class="topology" viewBox="0 24 ${width} ${height - 24}" width="${width}" height="${height - 24}" role="img" aria-labelledby="topology-title" aria-describedby="topology-words">
<title id="topology-title">Listeners, virtual servers, routes, and where these lead</title>
${headings.map(({ x, text }) => markup`<text class="heading" x="${x}" y="${TOP - 14}">${text}</text>`)}
${topology.edges.map((edge) => markup`<path class="edge${edge.requests > 0 && ` flow${weight(edge.requests)}`}" d="${curve(...ends(edge))}"/>`)}
${boxes.map((box) => drawn(box, trouble.has(box.node.id)))}
${topology.edges.map((edge) => edge.requests > 0 && rate(edge, ...ends(edge)))}
</svg>`;
}

/** How wide an arrow is: of 1, 10 and 100 requests a second. */
const weight = (requests: number): number => Math.min(3, Math.max(1, Math.floor(Math.log10(requests)) + 2));

function drawn({ node, x, y, width, height }: Box, trouble: boolean): Markup {
  const round = node.kind === "listener" ? 12 : 5;
  const lines = node.lines.map((line, i) => {
    const isMore = i > 0 && node.kind !== "server";
    return markup`<text${isMore && markup` class="more"`} x="${x + PAD}" y="${y + PAD / 2 + 13 + i * LINE}">${cut(line)}</text>`;
  });
  return markup`<g class="node ${node.kind}${trouble && " trouble"}"><rect x="${x}" y="${y}" width="${width}" height="${height}" rx="${round}"/>${lines}</g>`;
}

/** Beside the end of the arrow, where arrows that leave together are apart. */
function rate({ requests }: TopologyEdge, from: Box, to: Box): Markup {
  const x = to.x - 6;
  const up = from.y + from.height / 2 <= to.y + to.height / 2;
  const y = to.y + to.height / 2 + (up ? -5 : 13);
  return markup`<text class="rate" x="${x}" y="${y}" text-anchor="end">${countText(requests)}/s</text>`;
}

/** The same as sentences. */
function topologyWords({ columns, edges }: Topology): readonly string[] {
  const names = new Map(columns.flatMap(({ nodes }) => nodes.map(({ id, lines }) => [id, lines.join(", ")])));
  return edges.map(
    ({ from, to, requests }) =>
      `${names.get(from)} leads to ${names.get(to)}: ${countText(requests)} requests a second`,
  );
}

/** A column is at least as wide as its longest word, so one that no column has room for is broken anywhere. */
const isLong = (text: string): boolean => /\S{49}/.test(text);
const LONG = markup` class="long"`;

// The tables of the page. Each has a caption, and a text for an empty table.

function transfersTable({ transfers, moreTransfers }: Overview): Markup {
  if (transfers.length === 0) return markup`<p class="none">Nothing is being transferred.</p>`;
  const rows = transfers.map(
    (one) => markup`<tr role="row" data-key="${one.pid}-${one.id}">
<th role="rowheader" scope="row"><span class="what">${arrow(one.kind)}<span class="path${isLong(one.path + (one.file ?? "")) && " long"}">${one.path}${one.file !== undefined && markup`<b>${one.file}</b>`}</span></span>
<span class="sub">${[one.method, one.client, one.program].filter((text) => text !== "").join(" · ")}</span></th>
<td role="cell" class="progress">${progress(one)}</td>
<td role="cell" class="number">${bytesText(one.bytesPerSecond)}/s</td>
<td role="cell" class="number wide">${durationText(one.ageMs)}</td>
</tr>`,
  );
  const more =
    moreTransfers > 0 &&
    markup`<p class="none">And ${plural(moreTransfers, "other request")}, which moved fewer bytes.</p>`;
  return markup`<table class="stack" role="table"><caption class="hidden">Requests in progress, the oldest first</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Request</th><th role="columnheader" scope="col">Progress</th><th role="columnheader" scope="col" class="number">Rate</th><th role="columnheader" scope="col" class="number wide">Age</th></tr></thead>
<tbody role="rowgroup">${rows}</tbody></table>${more}`;
}

const KINDS = { upload: ["↑", "Upload"], download: ["↓", "Download"], tunnel: ["↕", "Tunnel"] } as const;

const arrow = (kind: ListedTransfer["kind"]): Markup =>
  markup`<span class="kind" aria-hidden="true">${KINDS[kind][0]}</span><span class="hidden">${KINDS[kind][1]} </span>`;

function progress({ kind, bytesIn, bytesOut, bytesTotal, path, file }: ListedTransfer): Markup {
  if (kind === "tunnel")
    return markup`<span class="sub">${bytesText(bytesIn)} in, ${bytesText(bytesOut)} out</span>`;
  const done = kind === "upload" ? bytesIn : bytesOut;
  if (bytesTotal === undefined) return markup`<span class="sub">${bytesText(done)}</span>`;
  const percent = Math.floor((100 * done) / bytesTotal);
  return markup`<progress max="100" value="${percent}" aria-label="${KINDS[kind][1]} of ${file ?? path}">${percent} %</progress>
<span class="sub">${percent} %, ${bytesText(done)} of ${bytesText(bytesTotal)}</span>`;
}

function upstreamsTable(upstreams: readonly OverviewUpstream[]): Markup {
  if (upstreams.length === 0) return markup`<p class="none">No route leads to an upstream.</p>`;
  const rows = upstreams.flatMap(({ name, servers }) =>
    servers.map(
      (one, i) => markup`<tr role="row" data-key="${name} ${one.url}">
<th role="rowheader" scope="row"${isLong(name) && LONG}>${i === 0 ? name : markup`<span class="hidden">${name}</span>`}</th>
<td role="cell" class="url${isLong(one.url + (one.why ?? "")) && " long"}">${one.url}${one.backup && markup` <span class="sub">backup</span>`}${one.why !== undefined && markup`<span class="sub why">${one.why}</span>`}</td>
<td role="cell">${serverState(one)}</td>
<td role="cell" class="number wide">${one.inProgress ?? "–"}</td>
</tr>`,
    ),
  );
  return markup`<table class="stack" role="table"><caption class="hidden">Servers of upstreams, and whether they respond</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Upstream</th><th role="columnheader" scope="col">Server</th><th role="columnheader" scope="col">State</th><th role="columnheader" scope="col" class="number wide">In progress</th></tr></thead>
<tbody role="rowgroup">${rows}</tbody></table>`;
}

const STATES = {
  unasked: "idle",
  up: "good",
  failing: "warn",
  out: "warn",
  drained: "idle",
  down: "bad",
} as const;

const serverState = (server: OverviewServer): Markup =>
  markup`<span class="state ${STATES[server.state]}">${stateWords(server)}</span>${server.failures > 0 && markup`<span class="sub why">${countText(server.failures)} failed a minute</span>`}`;

function certificatesTable(certificates: readonly OverviewCertificate[]): Markup {
  if (certificates.length === 0) return markup`<p class="none">No listener has a certificate.</p>`;
  const rows = certificates.map(
    ({
      names,
      listeners,
      issuer,
      source,
      notAfter,
      daysLeft,
      end,
      problem,
      waitsFor,
    }) => markup`<tr data-key="${names.join(" ")} ${listeners.join(" ")}">
<th scope="row"${isLong(`${names.join(" ")} ${problem?.message}`) && LONG}>${names.slice(0, NAMES_MAX).join(", ")}${names.length > NAMES_MAX && ` and ${names.length - NAMES_MAX} more`}<span class="sub">${source === "temporary" ? "temporary, by " : "by "}${issuer}${waitsFor !== undefined && `; the host with the address ${waitsFor} asks for certificates`}</span>${problem !== undefined && markup`<span class="sub why">${problem.message}. ${problem.fix}</span>`}</th>
<td><span class="state ${problem !== undefined && end === "later" ? "warn" : ENDS[end]}">${daysLeft < 0 ? "ended" : "ends"} ${daysText(daysLeft)}</span><span class="sub"><time datetime="${new Date(notAfter).toISOString()}">${timeText(notAfter).slice(0, 10)}</time></span></td>
</tr>`,
  );
  return markup`<table><caption class="hidden">Certificates, and when they end</caption>
<thead><tr><th scope="col">Names</th><th scope="col">End</th></tr></thead>
<tbody>${rows}</tbody></table>`;
}

const ENDS = { ended: "bad", last: "bad", soon: "warn", later: "good" } as const;
const NAMES_MAX = 3;

function eventsList(events: readonly OverviewEvent[], now: number): Markup {
  if (events.length === 0) return markup`<p class="none">Nothing has been reported since the start.</p>`;
  return markup`<ol class="events">${events.map(
    ({ at, level, message, problems }) => markup`<li class="${level}" data-key="${at} ${message}">
<time datetime="${new Date(at).toISOString()}" title="${timeText(at)}">${durationText(now - at)} ago</time>
<div><p>${level !== "info" && markup`<span class="state ${level === "warn" ? "warn" : "bad"}">${level === "warn" ? "warning" : "error"}</span> `}${message}</p>
${problems.map(({ path, message: what, fix }) => markup`<p class="sub"><b>${path}</b> ${what}. ${fix}</p>`)}</div></li>`,
  )}</ol>`;
}
