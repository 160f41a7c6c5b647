import { markup, type Markup } from "./markup.js";
import type {
  ListedTransfer,
  Overview,
  OverviewCertificate,
  OverviewEvent,
  OverviewServer,
  OverviewUpstream,
} from "./overview.js";
import { bytesText, countText, daysText, durationText, plural, timeText } from "./words.js";

/** The tables of the page. Each has a caption, and says what it has nothing of. */

export function transfersTable({ transfers, moreTransfers }: Overview): Markup {
  if (transfers.length === 0) return markup`<p class="none">Nothing is being transferred.</p>`;
  const rows = transfers.map(
    (one) => markup`<tr role="row" data-key="${one.pid}-${one.id}">
<th role="rowheader" scope="row"><span class="what">${arrow(one.kind)}<span class="path">${one.path}${one.file !== undefined && markup`<b>${one.file}</b>`}</span></span>
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

export function upstreamsTable(upstreams: readonly OverviewUpstream[]): Markup {
  if (upstreams.length === 0) return markup`<p class="none">No route leads to an upstream.</p>`;
  const rows = upstreams.flatMap(({ name, servers }) =>
    servers.map(
      (one, i) => markup`<tr role="row" data-key="${name} ${one.url}">
<th role="rowheader" scope="row">${i === 0 ? name : markup`<span class="hidden">${name}</span>`}</th>
<td role="cell" class="url">${one.url}${one.backup && markup` <span class="sub">backup</span>`}${one.why !== undefined && markup`<span class="sub why">${one.why}</span>`}</td>
<td role="cell">${serverState(one)}</td>
<td role="cell" class="number wide">${one.inProgress ?? "–"}</td>
</tr>`,
    ),
  );
  return markup`<table class="stack" role="table"><caption class="hidden">Servers of upstreams, and whether they answer</caption>
<thead role="rowgroup"><tr role="row"><th role="columnheader" scope="col">Upstream</th><th role="columnheader" scope="col">Server</th><th role="columnheader" scope="col">State</th><th role="columnheader" scope="col" class="number wide">In progress</th></tr></thead>
<tbody role="rowgroup">${rows}</tbody></table>`;
}

const STATES = { up: "good", failing: "warn", out: "warn", drained: "idle", down: "bad" } as const;

const serverState = ({ state, failures }: OverviewServer): Markup =>
  markup`<span class="state ${STATES[state]}">${state}</span>${failures > 0 && markup`<span class="sub why">${countText(failures)} failed a minute</span>`}`;

export function certificatesTable(certificates: readonly OverviewCertificate[]): Markup {
  if (certificates.length === 0) return markup`<p class="none">No listener has a certificate.</p>`;
  const rows = certificates.map(
    ({
      names,
      listeners,
      issuer,
      source,
      notAfter,
      daysLeft,
      problem,
    }) => markup`<tr data-key="${names.join(" ")} ${listeners.join(" ")}">
<th scope="row">${names.slice(0, NAMES_MAX).join(", ")}${names.length > NAMES_MAX && ` and ${names.length - NAMES_MAX} more`}<span class="sub">${source === "temporary" ? "temporary, by " : "by "}${issuer}</span>${problem !== undefined && markup`<span class="sub why">${problem.message}. ${problem.fix}</span>`}</th>
<td><span class="state ${daysLeft < 3 ? "bad" : daysLeft < 14 || problem !== undefined ? "warn" : "good"}">${daysLeft < 0 ? "ended" : "ends"} ${daysText(daysLeft)}</span><span class="sub"><time datetime="${new Date(notAfter).toISOString()}">${timeText(notAfter).slice(0, 10)}</time></span></td>
</tr>`,
  );
  return markup`<table><caption class="hidden">Certificates, and when they end</caption>
<thead><tr><th scope="col">Names</th><th scope="col">End</th></tr></thead>
<tbody>${rows}</tbody></table>`;
}

const NAMES_MAX = 3;

export function eventsList(events: readonly OverviewEvent[], now: number): Markup {
  if (events.length === 0) return markup`<p class="none">Nothing has been reported since the start.</p>`;
  return markup`<ol class="events">${events.map(
    ({ at, level, message, problems }) => markup`<li class="${level}" data-key="${at} ${message}">
<time datetime="${new Date(at).toISOString()}" title="${timeText(at)}">${durationText(now - at)} ago</time>
<div><p>${level !== "info" && markup`<span class="state ${level === "warn" ? "warn" : "bad"}">${level === "warn" ? "warning" : "error"}</span> `}${message}</p>
${problems.map(({ path, message: what, fix }) => markup`<p class="sub"><b>${path}</b> ${what}. ${fix}</p>`)}</div></li>`,
  )}</ol>`;
}
