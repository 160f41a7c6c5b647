import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

/** As much of Nextcloud's interface as its sync client asks of a server: one user's files in one folder. */
export class SyncServer {
  readonly files = new Map<string, { readonly body: Buffer; readonly id: number }>();
  /** Of the requests that reached the server: `METHOD target`. */
  readonly asked: string[] = [];
  private readonly server: Server = createServer((request, response) => void this.respond(request, response));

  async listen(): Promise<this> {
    await once(this.server.listen(0, "127.0.0.1"), "listening");
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url!, this.url);
    this.asked.push(`${request.method} ${pathname}`);
    const body = await buffer(request);
    if (pathname === "/status.php") return json(response, STATUS);
    if (pathname.endsWith("/cloud/capabilities")) return json(response, ocs(CAPABILITIES));
    if (pathname.endsWith("/cloud/user")) return json(response, ocs({ id: USER, "display-name": USER }));
    const folder = FOLDERS.find((path) => pathname.startsWith(path));
    if (folder === undefined) return void response.writeHead(404).end();
    const name = pathname.slice(folder.length);
    if (request.method === "PROPFIND") return this.list(response, folder);
    if (request.method !== "PUT") return void response.writeHead(405).end();
    const id = this.files.size + 1;
    this.files.set(name, { body, id });
    const etag = etagOf(id);
    response.writeHead(201, {
      "OC-FileId": idOf(id),
      "OC-ETag": etag,
      ETag: etag,
      "X-OC-MTime": "accepted",
    });
    response.end();
  }

  private list(response: ServerResponse, folder: string): void {
    const root = entry(folder, 0, "<d:resourcetype><d:collection/></d:resourcetype>", "RDNVCK");
    const files = [...this.files].map(([name, { body, id }]) => {
      const length = `<d:resourcetype/><d:getcontentlength>${body.length}</d:getcontentlength>`;
      return entry(`${folder}${name}`, id, length, "RDNVW");
    });
    response.writeHead(207, { "Content-Type": "application/xml; charset=utf-8" });
    response.end(
      '<?xml version="1.0"?><d:multistatus xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns">' +
        `${root}${files.join("")}</d:multistatus>`,
    );
  }
}

const USER = "anna";
/** The same folder for clients of Nextcloud and of ownCloud. */
const FOLDERS = [`/remote.php/dav/files/${USER}/`, "/remote.php/webdav/"];
const VERSION = "27.1.11";

const STATUS = {
  installed: true,
  maintenance: false,
  needsDbUpgrade: false,
  version: `${VERSION}.3`,
  versionstring: VERSION,
  edition: "",
  productname: "Nextcloud",
};

const CAPABILITIES = {
  version: { major: 27, minor: 1, micro: 11, string: VERSION, edition: "" },
  capabilities: { core: { "webdav-root": "remote.php/webdav" }, dav: {} },
};

const ocs = (data: unknown): unknown => ({ ocs: { meta: { status: "ok", statuscode: 100 }, data } });

function json(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
}

const idOf = (id: number): string => `${String(id).padStart(8, "0")}oc`;
const etagOf = (id: number): string => `"e${id}"`;

function entry(href: string, id: number, more: string, permissions: string): string {
  const props =
    `<d:getetag>${etagOf(id)}</d:getetag><oc:id>${idOf(id)}</oc:id><oc:permissions>${permissions}</oc:permissions>` +
    `<d:getlastmodified>Sun, 01 Nov 2026 10:00:00 GMT</d:getlastmodified>${more}`;
  return (
    `<d:response><d:href>${href}</d:href>` +
    `<d:propstat><d:prop>${props}</d:prop><d:status>HTTP/1.1 200 OK</d:status></d:propstat></d:response>`
  );
}
