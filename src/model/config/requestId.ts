import * as z from "zod";
import { flag, requestFieldName } from "../fields.js";

/** Fields with a meaning of their own, which an id must not replace. */
const REFUSED = [
  ...["Authorization", "Cookie", "Destination", "Range", "Referer", "User-Agent"],
  ...["traceparent", "tracestate"],
];

export const requestId = z
  .strictObject({
    field: requestFieldName(
      "Field in which upstreams get the id, in place of what the client sent. One of a trusted proxy is kept if it has up " +
        "to 128 letters, digits and `._:+/=-`.",
      "X-Correlation-Id",
      REFUSED,
    ).default("X-Request-Id"),
    response: flag(false, "Whether responses have the field as well, in place of what the upstream sent."),
  })
  .describe(
    "Gives each request an id: upstreams get it, and log lines and error pages have it (`{{requestId}}`). `{}` is enough. " +
      "Without this, only requests with an error page of the config have one.",
  );
