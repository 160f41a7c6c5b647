/** The time as a `Date` field value (RFC 9110, 5.6.7), formatted once a second. */
export function httpDate(): string {
  formattedAt = Date.now();
  const second = Math.floor(formattedAt / 1000);
  if (second !== formattedSecond) {
    formattedSecond = second;
    formatted = new Date(second * 1000).toUTCString();
  }
  return formatted;
}

/** When `httpDate` was called last, in milliseconds since the epoch: each head of a response asks for it. */
export let formattedAt = 0;

let formattedSecond = 0;
let formatted = "";
