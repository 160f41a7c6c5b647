import { markup, type Markup } from "./markup.js";
import type { Overview, Traffic } from "./overview.js";
import { plot, roundTop } from "./plot.js";
import { certificatesTable, eventsList, transfersTable, upstreamsTable } from "./tables.js";
import { topologyPicture, topologyWords } from "./topologyPicture.js";
import { troublesOf } from "./troubles.js";
import { bytesText, countText, durationText, plural, timeText } from "./words.js";

/** Where the page finds its own files, relative to itself. */
export interface PageLinks {
  readonly script: string;
  readonly style: string;
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
<section aria-labelledby="h-topology"><h2 id="h-topology">What leads where</h2>
<div class="scroll" role="group" aria-label="Picture of it" tabindex="0">${topologyPicture(topology)}</div>
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
  const troubles = troublesOf(overview);
  return troubles.length === 0 ? "Portico: all is well" : `Portico: ${plural(troubles.length, "trouble")}`;
}

function about({ version, at, since, generation, workers, listeners }: Overview): Markup {
  return markup`<p id="about">${listeners.join(" · ")}<br>Release ${version}, up for ${durationText(at - since)}, generation ${generation}, ${plural(workers.running, "worker")}</p>`;
}

/** Whether all is well, in one place; spoken when it changes. */
function standing(overview: Overview): Markup {
  const troubles = troublesOf(overview);
  const list = troubles.map(
    ({ level, text, fix }) =>
      markup`<li class="${level}"><span class="hidden">${level === "error" ? "Error: " : "Warning: "}</span>${text}.${fix !== undefined && markup` <span class="sub">${fix}</span>`}</li>`,
  );
  return markup`<div id="standing" aria-live="polite">${
    troubles.length === 0
      ? markup`<p class="well">All is well.</p>`
      : markup`<ul class="troubles">${list}</ul>`
  }</div>`;
}

function traffic({ requests, bytesIn, bytesOut, connections, history }: Traffic): Markup {
  const { periods, everyMs } = history;
  const span = durationText(periods * everyMs);
  const mostRequests = roundTop(history.requests);
  const mostBytes = roundTop([...history.bytesIn, ...history.bytesOut]);
  const requestsLabel = `Requests a second in the last ${span}: ${countText(requests)} now, ${countText(Math.max(0, ...history.requests))} at most`;
  const bytesLabel = `Bytes a second in the last ${span}: ${bytesText(bytesIn)} in and ${bytesText(bytesOut)} out now, ${bytesText(Math.max(0, ...history.bytesIn))} in and ${bytesText(Math.max(0, ...history.bytesOut))} out at most`;
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
