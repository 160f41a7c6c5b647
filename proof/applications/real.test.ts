import { Browser } from "../../testkit/browser.js";
import { eventually } from "../../testkit/waiting.js";
import { COPYPARTY } from "./copyparty.js";
import { CREDENTIALS, PASSWORD, RENAMED, type Running, USER } from "./clients.js";
import { RADICALE } from "./radicale.js";
import { REAL, tryReal } from "./real.js";
import { requireSftpgo, SFTPGO } from "./sftpgo.js";

/**
 * Two file servers, from Python's index and of Go modules, as applications of one's own, used by rclone and a browser; and a
 * calendar server behind its entry.
 */

const MIB = 1_048_576;

test("copyparty: files go there and back, links lead to the public name, and a browser logs in", async () => {
  const seen = await tryReal(REAL.copyparty, COPYPARTY, 256 * MIB, logIn);
  expect(seen).toEqual([
    "/?health is 200",
    expect.stringMatching(/^rclone uploaded 268435456 bytes in \S+ s, renamed the file, and got it back$/),
    "a share link was opened",
    "a browser logged in",
  ]);
});

test("SFTPGo: files go there and back, a share link opens, and a browser logs in", async () => {
  requireSftpgo();
  const seen = await tryReal(REAL.sftpgo, SFTPGO, 1_024 * MIB, logInByForm);
  expect(seen).toEqual([
    "/healthz is 200",
    expect.stringMatching(/^rclone uploaded 1073741824 bytes in \S+ s, renamed the file, and got it back$/),
    "a share link was opened",
    "a browser with a wrong password stays at the form; with the right one it sees the file",
  ]);
});

test("Radicale: a calendar is found from the public name, made, written and read, and an event renamed", async () => {
  expect(await tryReal(REAL.radicale, RADICALE, 0)).toEqual([
    "/.well-known/caldav is 301",
    "the well-known paths and the principal lead to the public name",
    "an event was written, found, renamed and read back",
    "a wrong password is 401",
  ]);
});

/**
 * Its session is a cookie that is `Secure`, because the front end says that clients use https. What shows its pages,
 * scripts of others in `static/vendor`, is in no Go module: the form is filled in and the files are asked for by
 * scripts of the test.
 */
async function logInByForm({ port }: Running): Promise<string[]> {
  const browser = await Browser.start();
  const submit = async (password: string): Promise<void> => {
    await browser.open(`https://localhost:${port}/web/client/login`);
    await browser.evaluate(`const form = document.querySelector("form");
      form.username.value = ${JSON.stringify(USER)};
      form.password.value = ${JSON.stringify(password)};
      form.submit()`);
  };
  const at = (path: string): Promise<void> =>
    eventually(async () => new URL(await browser.url()).pathname === path, `for ${path}`, {
      everyMs: 200,
      ms: 20_000,
    });
  try {
    await submit("wrong");
    const message = "return document.querySelector('#errorTxt')?.dataset.i18n !== undefined";
    await eventually(() => browser.evaluate<boolean>(message), "for the form with an error", {
      everyMs: 200,
      ms: 20_000,
    });
    await at("/web/client/login");
    await submit(PASSWORD);
    await at("/web/client/files");
    const names = await browser.evaluate<string>(`const asked = new XMLHttpRequest();
      asked.open("GET", "/web/client/dirs?path=%2F", false);
      asked.send();
      return asked.responseText`);
    if (!names.includes(RENAMED)) throw new Error(`a browser sees ${names}`);
    return ["a browser with a wrong password stays at the form; with the right one it sees the file"];
  } finally {
    await browser.stop();
  }
}

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
