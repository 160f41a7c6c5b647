import { PageTemplate } from "../../model/serving.js";

/** What browsers get while requests are refused for now: the page asks again, without a script. */
export const PAUSE_PAGE = new PageTemplate(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="20">
<title>{{serverName}}: back soon</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 34rem; margin: 20vh auto 0; padding: 0 1.5rem; }
h1 { font-size: 1.5rem; }
small { opacity: 0.7; }
</style>
</head>
<body>
<main>
<h1>{{serverName}} is back soon</h1>
<p>{{message}}</p>
<p>This page tries again every 20 seconds.</p>
<p><small>{{time}}, {{requestId}}</small></p>
</main>
</body>
</html>
`);
