/**
 * The page of the default server, which responds for every name that is not the application's (service 1.3). Users who
 * see it have reached the right machine by a name it does not serve.
 *
 * @param applicationUrl a link on the page; of a checked server name and path, so nothing in it is markup
 */
export function renderDefaultPage(applicationUrl?: string): string {
  const where =
    applicationUrl === undefined
      ? ""
      : ` The application is at\n<a href="${applicationUrl}">${applicationUrl}</a>.`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Portico</title>
<style>body{font:1rem/1.5 system-ui,sans-serif;max-width:36rem;margin:4rem auto;padding:0 1rem}</style>
</head>
<body>
<h1>The proxy is running</h1>
<p>This is the page of its default server. No application is served at this address.${where}</p>
</body>
</html>
`;
}
