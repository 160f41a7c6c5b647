import type { TerraformStack } from "cdktf";
import { Action, Application, FrontEnd, Mode, TlsMaterial } from "../../../src/index.js";

/** A shop that leaves nginx: certbot's files stay, and so do the old URLs, which lead to the new places. */
export function formerNginx(stack: TerraformStack): FrontEnd {
  const live = "/etc/letsencrypt/live/shop.net";
  const front = new FrontEnd(stack, "shop", {
    host: { address: "192.0.2.10", publicName: "shop.net" },
    additionalServerNames: ["www.shop.net"],
    mode: Mode.tls({
      material: TlsMaterial.fromFiles({ certificate: `${live}/fullchain.pem`, key: `${live}/privkey.pem` }),
      hsts: { maxAge: 15_552_000 },
    }),
    application: Application.server("http://127.0.0.1:3000"),
  });
  const { site } = front;
  // rewrite ^/blog/(.*)$ /journal/$1 permanent;
  site.addRoute("blog", { path: "/blog", action: Action.redirect({ path: "/journal", keep: "rest" }) });
  // location = /impressum.html { return 301 /legal; }
  site.addRoute("legal", {
    path: "/impressum.html",
    match: "exact",
    action: Action.redirect({ path: "/legal" }),
  });
  // location /static { alias /srv/shop/static; expires 30d; }
  site.addRoute("static", {
    path: "/static",
    action: Action.staticFiles("/srv/shop/static", { cacheControl: "max-age=2592000" }),
  });
  site.addApplication("forum", {
    path: "/forum",
    application: Application.server("http://127.0.0.1:4567", { strip: "raw" }),
  });
  front.addSite("old", {
    serverNames: ["old-shop.net"],
    application: Application.redirect({ host: "shop.net" }),
  });
  return front;
}
