import type { VirtualServerConfig } from "../../model/index.js";
import { responseFieldsFor } from "../exchange/responseFields.js";
import { serverHeader } from "../dispatch/errorPages.js";
import { httpDate } from "../dispatch/httpDate.js";

/**
 * nginx's complete response to HTTP without TLS on a TLS port (decisions 1.7), as the listener's default server gives it.
 * The TLS layer has consumed the request, so there is no exchange to answer.
 */
export function plainHttpResponse(server: VirtualServerConfig): string {
  const by = serverHeader(server);
  const fields = responseFieldsFor({ server, route: undefined, client: { responseRules: "http" } });
  const page = [
    "<html>",
    `<head><title>400 ${REASON}</title></head>`,
    "<body>",
    "<center><h1>400 Bad Request</h1></center>",
    `<center>${REASON}</center>`,
    `<hr><center>${by}</center>`,
    "</body>",
    "</html>",
    "",
  ].join("\r\n");
  const type = "Content-Type: text/html\r\n\r\n";
  return [
    "HTTP/1.1 400 Bad Request",
    ...(fields?.hidesServer === true ? [] : [`Server: ${by}`]),
    `Date: ${httpDate()}`,
    `Content-Length: ${page.length}`,
    "Connection: close",
    (fields === undefined ? type : fields.inLines(type)) + page,
  ].join("\r\n");
}

const REASON = "The plain HTTP request was sent to HTTPS port";
