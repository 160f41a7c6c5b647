import { Browser } from "../application/browser.js";
import { eventually } from "../kit/waiting.js";
import { COPYPARTY } from "./copyparty.js";
import { CREDENTIALS, REAL, type Running, tryReal } from "./real.js";

/** A file server from Python's index as an application of one's own, used by rclone and a browser. */

const MIB = 1_048_576;

test("files go there and back, links lead to the public name, and a browser logs in", async () => {
  const seen = await tryReal(REAL.copyparty, COPYPARTY, 256 * MIB, logIn);
  expect(seen).toEqual([
    "/?health is 200",
    expect.stringMatching(/^rclone uploaded 268435456 bytes in \S+ s, renamed the file, and got it back$/),
    "a share link was opened",
    "a browser logged in",
  ]);
});

async function logIn({ port }: Running): Promise<string[]> {
  const browser = await Browser.start();
  try {
    await browser.open(`https://localhost:${port}/?h`);
    await browser.type("#lp", CREDENTIALS.password);
    await browser.click("#ls");
    const knows = async (): Promise<boolean> => {
      await browser.open(`https://localhost:${port}/?h`);
      return browser.evaluate(`return document.body.innerText.includes(${JSON.stringify(CREDENTIALS.user)})`);
    };
    await eventually(knows, "for the browser to be logged in", { everyMs: 200, ms: 20_000 });
    return ["a browser logged in"];
  } finally {
    await browser.stop();
  }
}
