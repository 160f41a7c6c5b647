/** How the end of a message is marked on the wire (RFC 9112, 6.3). */
const enum Kind {
  /** The head is all there is. */
  None,
  /** `Content-Length` says where the body ends. */
  Length,
  Chunked,
  /** The body ends with the connection. */
  Close,
  /** There is no end: after an upgrade the bytes belong to another protocol. */
  Tunnel,
}

/** A message was about to differ from its head: an internal fault. A message that was begun has to be cut. */
export class FramingError extends Error {}

/**
 * Decides how messages of a connection begin and end, for requests to upstreams and responses to HTTP/1.1 clients. It
 * writes the framing fields, counts the bytes after them, and refuses any byte too many and an end too early: the peer
 * reads exactly what the head announced, or else the next message would begin within this one. One object serves all
 * messages of a connection, one after the other.
 */
export class MessageFraming {
  private kind = Kind.None;
  /** Body bytes that may still be sent. */
  private left = 0;
  private ended = true;

  /**
   * A request begins. Its body keeps the framing it came with: a length, or chunks.
   *
   * @param bodyLength bytes that follow; -1 if that is not known
   * @param declared whether a length of 0 was declared
   * @param upgrade whether it asks for a tunnel: such a request has no body
   * @returns the framing field as a whole line, or nothing
   */
  beginRequest(bodyLength: number, declared: boolean, upgrade: boolean): string {
    if (upgrade) this.begin(Kind.Tunnel, 0);
    else if (bodyLength === -1) this.begin(Kind.Chunked, Infinity);
    else this.begin(bodyLength === 0 ? Kind.None : Kind.Length, bodyLength);
    if (upgrade) return "";
    if (bodyLength === -1) return "Transfer-Encoding: chunked\r\n";
    return bodyLength > 0 || declared ? `Content-Length: ${bodyLength}\r\n` : "";
  }

  /**
   * A final response begins.
   *
   * @param method of the request; HEAD gets no body
   * @param bodyLength bytes that follow, or would; -1 if that is not known
   * @param chunks whether the client understands the chunked coding
   * @param upgrade protocol that a 101 switches to
   * @returns the framing fields as whole lines, or nothing
   */
  beginResponse(
    method: string,
    status: number,
    bodyLength: number,
    chunks: boolean,
    upgrade: string | undefined,
  ): string {
    if (status === 101) this.begin(Kind.Tunnel, Infinity);
    else if (method === "HEAD" || status === 204 || status === 304 || status < 200) this.begin(Kind.None, 0);
    else if (bodyLength >= 0) this.begin(Kind.Length, bodyLength);
    else this.begin(chunks ? Kind.Chunked : Kind.Close, Infinity);
    if (status === 101) return `Connection: Upgrade\r\nUpgrade: ${upgrade}\r\n`;
    if (bodyLength >= 0 && status !== 204) return `Content-Length: ${bodyLength}\r\n`;
    return this.kind === Kind.Chunked ? "Transfer-Encoding: chunked\r\n" : "";
  }

  /** The requested upgrade was granted: bytes pass through as they are. */
  openTunnel(): void {
    if (this.kind !== Kind.Tunnel) throw new FramingError("a tunnel that was not requested");
    this.left = Infinity;
    this.ended = false;
  }

  /** Bytes of body that may still be sent; Infinity if the head announced no number. */
  get bytesLeft(): number {
    return this.left;
  }

  /** Whether bytes may follow the head at all. */
  get hasBody(): boolean {
    return this.kind !== Kind.None;
  }

  get isTunnel(): boolean {
    return this.kind === Kind.Tunnel;
  }

  /** The framing before a piece of body: the size of a chunk (RFC 9112, 7.1), or nothing. */
  pieceStart(bytes: number): string {
    return this.kind === Kind.Chunked ? `${bytes.toString(16)}\r\n` : "";
  }

  /** The framing after a piece of body: the end of a chunk, or nothing. */
  get pieceEnd(): string {
    return this.kind === Kind.Chunked ? "\r\n" : "";
  }

  /** Whether the end of the message is the end of its connection. */
  get endsByClose(): boolean {
    return this.kind === Kind.Close || this.kind === Kind.Tunnel;
  }

  /** Whether the last message was sent to its end, so that another may follow on this connection. */
  get atBoundary(): boolean {
    return this.ended && !this.endsByClose;
  }

  /**
   * Counts bytes of body that follow now.
   *
   * @throws FramingError if that is more than was announced
   */
  count(bytes: number): void {
    if (bytes > this.left) throw new FramingError(`${bytes} bytes where ${this.left} may follow`);
    if (this.ended) throw new FramingError("bytes after the end");
    this.left -= bytes;
  }

  /**
   * The message ends here.
   *
   * @returns the bytes that mark it
   * @throws FramingError if bytes that were announced are missing
   */
  end(): string {
    if (this.kind === Kind.Length && this.left > 0)
      throw new FramingError(`ended ${this.left} bytes before its length`);
    const endsByChunk = this.kind === Kind.Chunked && !this.ended;
    this.ended = true;
    return endsByChunk ? "0\r\n\r\n" : "";
  }

  private begin(kind: Kind, left: number): void {
    this.kind = kind;
    this.left = left;
    this.ended = false;
  }
}
