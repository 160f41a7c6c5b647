/** The time as a `Date` field value (RFC 9110, 5.6.7), formatted once a second. */
export function httpDate(): string {
  const second = Math.floor(Date.now() / 1000);
  if (second !== formattedSecond) {
    formattedSecond = second;
    formatted = new Date(second * 1000).toUTCString();
  }
  return formatted;
}

let formattedSecond = 0;
let formatted = "";
