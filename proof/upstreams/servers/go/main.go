// The application of the tests on Go's net/http; ../wsgi.py says what it answers.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"time"
)

func number(query url.Values, name string) int {
	value, _ := strconv.Atoi(query.Get(name))
	return value
}

func wait(query url.Values) {
	time.Sleep(time.Duration(number(query, "ms")) * time.Millisecond)
}

func arrived(query url.Values, count int) bool {
	if !query.Has("seen") {
		return true
	}
	file, err := os.Stat(query.Get("seen"))
	return err == nil && file.Size() >= int64(count)
}

func text(w http.ResponseWriter, query url.Values) {
	code := number(query, "code")
	text := query.Get("text")
	if code == 302 {
		w.Header().Set("Location", "/elsewhere")
	}
	if query.Get("framing") == "length" {
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	}
	w.WriteHeader(code)
	w.(http.Flusher).Flush()
	wait(query)
	io.WriteString(w, text)
}

func download(w http.ResponseWriter, size int) {
	w.Header().Set("Content-Length", strconv.Itoa(size))
	block := make([]byte, 65536)
	for i := range block {
		block[i] = byte(i % 251)
	}
	for size > 0 {
		n := min(size, len(block))
		w.Write(block[:n])
		size -= n
	}
}

func answer(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	switch path.Base(r.URL.Path) {
	case "answer":
		wait(query)
		fmt.Fprintf(w, "response of %s", query.Get("id"))
	case "text":
		text(w, query)
	case "upload":
		hash := sha256.New()
		size, _ := io.Copy(hash, r.Body)
		fmt.Fprintf(w, "%d %s", size, hex.EncodeToString(hash.Sum(nil)))
	case "refuse":
		w.WriteHeader(413)
		io.WriteString(w, "too large")
	case "download":
		download(w, number(query, "size"))
	case "pieces":
		for i := 0; i < number(query, "count"); i++ {
			wait(query)
			for look := 0; look < 2000 && !arrived(query, i); look++ {
				time.Sleep(5 * time.Millisecond)
			}
			fmt.Fprintf(w, "piece %d\n", i)
			w.(http.Flusher).Flush()
		}
	case "hints":
		w.Header().Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(103)
		w.Header().Del("Link")
		w.WriteHeader(102)
		io.WriteString(w, "after hints")
	}
}

func main() {
	seconds, _ := strconv.Atoi(os.Args[2])
	server := &http.Server{
		Addr:        os.Args[1],
		Handler:     http.HandlerFunc(answer),
		IdleTimeout: time.Duration(seconds) * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}
