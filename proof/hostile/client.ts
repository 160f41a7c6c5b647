import { parseMessage } from "../nginx/messages.js";

/** One answer as a client reads it. */
export interface ClientAnswer {
  readonly status: number;
  readonly body: string;
  /** Whether its framing says that it is whole. */
  readonly complete: boolean;
}

/**
 * Final answers in what a client received. Bytes that are not an answer show as one of status 0.
 *
 * @param methods of the requests in turn; GET for those after them
 */
export function readAnswers(text: string, methods: readonly string[], ended: boolean): ClientAnswer[] {
  const bytes = Buffer.from(text, "latin1");
  const answers: ClientAnswer[] = [];
  let at = 0;
  while (at < bytes.length) {
    const method = methods[answers.length] ?? "GET";
    const message = parseMessage(bytes, at, { type: "response", method, ended });
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(message?.startLine ?? "")?.[1] ?? 0);
    if (message === undefined || status === 0)
      return [...answers, { status: 0, body: text.slice(at), complete: false }];
    at = message.end;
    // The invitation to send the body.
    if (status === 100) continue;
    answers.push({ status, body: message.body.toString("latin1"), complete: message.complete });
  }
  return answers;
}

/** A request after the one of the case: it must be answered as itself, or not at all. */
export const CANARY_LINE = "GET /sync/canary HTTP/1.1";
export const CANARY = `${CANARY_LINE}\r\nHost: sync.example\r\nX-Canary: yes\r\n\r\n`;

export const isCanary = ({ body, complete }: ClientAnswer): boolean => complete && body === CANARY_LINE;
