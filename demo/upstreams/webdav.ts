import { createServer, type Server } from "node:http";
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";

/**
 * The WebDAV daemon: a class 1 and 2 server (RFC 4918) over a folder, mounted below the route's path, which the proxy
 * leaves unchanged (service 4.1).
 *
 * @param mount path it is reached through, such as `/syncdav`
 * @param folder where its files lie; created with one file in it
 */
export async function createWebdav(mount: string, folder: string): Promise<Server> {
  // ES modules only: imported when needed, so that the rest of the demo loads without them.
  const [{ default: express }, { default: nephele }, { default: FileSystem }, { default: Anyone }] =
    await Promise.all([
      import("express"),
      import("nephele"),
      import("@nephele/adapter-file-system"),
      import("@nephele/authenticator-none"),
    ]);
  await mkdir(folder, { recursive: true });
  await writeFile(path.join(folder, "hello.txt"), "Hello from WebDAV.\n");
  const app = express();
  // The proxy on loopback tells the scheme that the client used; the URLs in responses are built from it.
  app.set("trust proxy", "loopback");
  app.use(mount, nephele({ adapter: new FileSystem({ root: folder }), authenticator: new Anyone() }));
  const server = createServer(app);
  // Node's five minutes for a whole request would cut off long uploads.
  server.requestTimeout = 0;
  return server;
}
