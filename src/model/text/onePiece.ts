/**
 * The same text as one piece. V8 keeps joined text as a tree and walks that again for every text it becomes part of, so
 * this pays off for text that is joined once and used often.
 *
 * @param text one char a byte
 */
export const onePiece = (text: string): string => Buffer.from(text, "latin1").toString("latin1");

/**
 * Marks the end of a text from a client that was cut, in log lines of either format as `\u2026`: no client can send the
 * character, because each char of such a text is a byte.
 */
export const CUT_MARK = "\u2026";
