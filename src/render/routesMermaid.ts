import type { GraphNode, RoutesGraph } from "../model/review/routesGraph.js";

/** The graph as Mermaid's flowchart, which many pages of code hosts draw. */
export function routesMermaid({ columns, edges }: RoutesGraph): string {
  const nodes = columns.flatMap((column) => column.nodes);
  const kinds = [...new Set(nodes.map(({ kind }) => kind))];
  const members = (kind: string): string =>
    nodes
      .filter((node) => node.kind === kind)
      .map(({ id }) => id)
      .join(",");
  return [
    "flowchart LR",
    ...nodes.map((node) => `  ${node.id}${shape(node)}`),
    ...edges.map(({ from, to }) => `  ${from} --> ${to}`),
    ...kinds.map((kind) => `  class ${members(kind)} ${kind}`),
    "",
  ].join("\n");
}

function shape({ kind, lines }: GraphNode): string {
  const label = `"${lines.map(escaped).join("<br/>")}"`;
  return kind === "listener" ? `([${label}])` : kind === "upstream" ? `[(${label})]` : `[${label}]`;
}

/** Any other character by its number, as Mermaid writes it: none of a label can end it, or be read as markup. */
const escaped = (text: string): string =>
  text.replace(/[^A-Za-z0-9 ./:_,()[\]-]/gu, (character) => `#${character.codePointAt(0)};`);
