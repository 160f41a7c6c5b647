import { exchange } from "../../testkit/peers.js";
import { type Stage, startStage } from "../wire/stage.js";

/** Redirects made of the client's own target: they never lead to another host, and never add a field. */
let stage: Stage;
beforeAll(async () => (stage = await startStage()));
afterAll(() => stage?.stop());

const DISGUISES = [
  "//syncmedia/img",
  "//evil.example/../syncmedia/img",
  "///evil.example/../../syncmedia/img",
  "/\\evil.example/../syncmedia/img",
  "/%2f/evil.example/../../../syncmedia/img",
  "//evil.example/..//syncmedia/img?x",
  "/syncmedia/%0d%0aX-Injected:y/../img",
  "/syncmedia/img?%0d%0aX-Injected:y",
];

test.each(DISGUISES)("a directory without its slash: %s", async (target) => {
  const { http } = stage.plain.ports;
  const response = await exchange(
    http,
    `GET ${target} HTTP/1.1\r\nHost: sync.example\r\nConnection: close\r\n\r\n`,
  );
  expect([301, 400, 404]).toContain(response.status);
  expect(response.headers["x-injected"]).toBeUndefined();
  if (response.status === 301) expect(response.headers["location"]).toMatch(/^\/[a-z]/);
});

test.each([
  "//evil.example/../sync/",
  "/\\evil.example/../sync/",
  "//sync/",
  "/sync/%0d%0aX-Injected:y",
  "/sync/@evil.example",
])("to TLS: %s", async (target) => {
  const { http } = stage.tls.ports;
  const response = await exchange(
    http,
    `GET ${target} HTTP/1.1\r\nHost: sync.example\r\nConnection: close\r\n\r\n`,
  );
  expect(response.status).toBe(301);
  expect(response.headers["x-injected"]).toBeUndefined();
  expect(new URL(response.headers["location"]!).host).toBe("sync.example");
});
