import { type Box, curve, cut, layout, LINE, PAD, TOP } from "../../model/review/graphLayout.js";
import { markup, type Markup } from "./markup.js";
import type { Topology, TopologyEdge } from "./overview.js";
import { countText } from "./words.js";

/** What leads where, with what flows on the arrows; in words below it for those who do not see it. */
export function topologyPicture(topology: Topology): Markup {
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
    const style = i === 0 || node.kind === "server" ? "" : "more";
    return markup`<text class="${style}" x="${x + PAD}" y="${y + PAD / 2 + 13 + i * LINE}">${cut(line)}</text>`;
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
export function topologyWords({ columns, edges }: Topology): readonly string[] {
  const names = new Map(columns.flatMap(({ nodes }) => nodes.map(({ id, lines }) => [id, lines.join(", ")])));
  return edges.map(
    ({ from, to, requests }) =>
      `${names.get(from)} leads to ${names.get(to)}: ${countText(requests)} requests a second`,
  );
}
