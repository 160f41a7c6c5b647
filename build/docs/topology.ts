import { readFileSync } from "node:fs";
import { join } from "node:path";
import { App, TerraformStack } from "cdktf";
import { Application, FrontEnd, Mode } from "../../src/index.js";
import type { ProxyConfig } from "../../src/model/index.js";
import { renderGraph, renderProxyConfig } from "../../src/testing/index.js";
import { ROOT } from "../paths.js";
import { formatted, type Page } from "./page.js";

const PLACE = /(<!-- topology -->\n)[^]*?(<!-- \/topology -->)/;

/** The smallest deployment of README.md. */
function smallest(): TerraformStack {
  const stack = new TerraformStack(new App(), "portico");
  new FrontEnd(stack, "files", {
    host: { address: "192.0.2.10", publicName: "files.example.org" },
    mode: Mode.tls(),
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
  });
  return stack;
}

/** docs/reviews.md, with the picture of what it serves, as `renderGraph` draws it. */
export const reviewsPage = (): Promise<Page> =>
  withPicture("docs/reviews.md", "mermaid", renderGraph(smallest()));

/** README.md, with the same in text. */
export const readmePage = (): Promise<Page> =>
  withPicture("README.md", "text", `${topology(renderProxyConfig(smallest())).join("\n")}\n`);

function withPicture(file: string, language: string, text: string): Promise<Page> {
  const picture = `\n\`\`\`${language}\n${text}\`\`\`\n\n`;
  const page = readFileSync(join(ROOT, file), "utf8");
  return formatted(
    file,
    page.replace(PLACE, (_, begin: string, end: string) => begin + picture + end),
  );
}

/** A line for each route, with its listener and virtual server where they begin. */
function topology({ listeners, virtualServers, upstreams }: ProxyConfig): string[] {
  const rows = listeners.flatMap((listener) => {
    const here = virtualServers.filter((server) => server.listeners.includes(listener.name));
    // "Any other name" comes after the names.
    const served = [...here].sort((a, b) => Number(a.default ?? false) - Number(b.default ?? false));
    return served.flatMap((server, i) =>
      server.routes.map(({ path, action }, j) => [
        i + j === 0 ? `port ${listener.port}, ${listener.protocol}` : "",
        j > 0
          ? ""
          : served.length === 1
            ? "any name"
            : server.default
              ? "any other name"
              : server.serverNames[0]!,
        path,
        destination(action, upstreams),
      ]),
    );
  });
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join("   ")
      .trimEnd(),
  );
}

function destination(
  action: ProxyConfig["virtualServers"][number]["routes"][number]["action"],
  upstreams: ProxyConfig["upstreams"],
): string {
  switch (action.type) {
    case "proxy":
      return `${action.upstream}, ${upstreams.find(({ name }) => name === action.upstream)!.url}`;
    case "staticFiles":
      return `files of ${action.directory}`;
    case "redirect":
      return `${action.status} to ${action.scheme ?? "http"}`;
    case "respond":
      return `${action.status}`;
    case "status":
      return "the status";
  }
}
