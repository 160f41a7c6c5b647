import { Pool } from "undici";
import { allOrigins, fail, forwardedFields, originOf, serve } from "./server.mjs";

/** node:http in front, undici's lowest level behind. */
const pools = new Map(allOrigins.map((origin) => [origin, new Pool(origin, { connections: 64 })]));
const HOP_BY_HOP = new Set(["connection", "keep-alive", "transfer-encoding", "upgrade", "expect"]);

function endToEnd(headers) {
  const kept = {};
  for (const name in headers) if (!HOP_BY_HOP.has(name)) kept[name] = headers[name];
  return kept;
}

serve((request, response) => {
  const { method, url, headers } = request;
  const hasBody = "content-length" in headers || "transfer-encoding" in headers;
  const path = url;
  const fields = { ...endToEnd(headers), ...forwardedFields(request) };
  let resume;
  response.on("drain", () => resume?.());
  pools.get(originOf(url)).dispatch(
    { method, path, headers: fields, body: hasBody ? request : null },
    {
      onConnect() {},
      onHeaders(status, rawHeaders, resumeBody) {
        resume = resumeBody;
        const fields = {};
        for (let i = 0; i < rawHeaders.length; i += 2) {
          const name = rawHeaders[i].toString("latin1").toLowerCase();
          if (!HOP_BY_HOP.has(name)) fields[name] = rawHeaders[i + 1].toString("latin1");
        }
        response.writeHead(status, fields);
        return true;
      },
      onData: (chunk) => response.write(chunk),
      onComplete: () => response.end(),
      onError: () => fail(response),
    },
  );
});
