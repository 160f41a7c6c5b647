/** The little of express that the WebDAV daemon uses; the package brings no types. */
declare module "express" {
  import type { RequestListener } from "node:http";

  interface Application extends RequestListener {
    set(name: string, value: unknown): this;
    use(path: string, handler: unknown): this;
  }
  export default function express(): Application;
}
