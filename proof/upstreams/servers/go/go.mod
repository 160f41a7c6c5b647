module portico/proof/upstreams

go 1.22
