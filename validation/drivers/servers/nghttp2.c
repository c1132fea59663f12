/* Driver of nghttp2's scheduler: a server's session, which reads requests with a Priority field and
   PRIORITY_UPDATE frames. Needs libnghttp2-dev. It turns RFC 7540's priorities off, as RFC 9218's need;
   with --silent it sends no such SETTINGS. A stream without data is found so when its turn comes. */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX (1 << 20)
static char is_active[MAX], is_submitted[MAX];
static int32_t wire_of[MAX], id_of[MAX]; /* on the wire ids ascend in the order of requests */
static int32_t n_opened;
static nghttp2_session *session;
static int is_silent, peeked, is_peek;
static long size; /* of the frame that is charged */

static ssize_t read_data(nghttp2_session *s, int32_t id, uint8_t *to, size_t n, uint32_t *flags,
                         nghttp2_data_source *source, void *user) {
    (void)s, (void)to, (void)flags, (void)source, (void)user;
    if (!is_active[id_of[id / 2]]) return NGHTTP2_ERR_DEFERRED;
    peeked = id_of[id / 2];
    return is_peek ? NGHTTP2_ERR_PAUSE : size < (long)n ? size : (ssize_t)n;
}

static void check(ssize_t code) {
    if (code < 0) fprintf(stderr, "%s\n", nghttp2_strerror((int)code)), exit(1);
}

static int next(int is_only_asked) { /* which stream's DATA is next, and send it unless only asked */
    const uint8_t *bytes;
    is_peek = is_only_asked, peeked = -1;
    for (ssize_t n = 1; n > 0 && peeked < 0;) check(n = nghttp2_session_mem_send(session, &bytes));
    return peeked;
}

static void receive(int type, int flags, int32_t id, const uint8_t *payload, size_t n) {
    uint8_t head[9] = {n >> 16, n >> 8, n, type, flags, id >> 24, id >> 16, id >> 8, id};
    check(nghttp2_session_mem_recv(session, head, sizeof head));
    check(nghttp2_session_mem_recv(session, payload, n));
}

static void reset(void) {
    static const uint8_t window[] = {0, 4, 0x7f, 0xff, 0xff, 0xff}, all[] = {0x7f, 0xff, 0, 0};
    nghttp2_settings_entry off = {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1};
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    if (session) nghttp2_session_del(session);
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_option_new(&option);
    nghttp2_option_set_builtin_recv_extension_type(option, NGHTTP2_PRIORITY_UPDATE);
    nghttp2_session_server_new2(&session, callbacks, NULL, option);
    nghttp2_option_del(option), nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, &off, !is_silent);
    check(nghttp2_session_mem_recv(session, (const uint8_t *)NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN));
    receive(NGHTTP2_SETTINGS, 0, 0, window, sizeof window);
    receive(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, window, 0);
    receive(NGHTTP2_WINDOW_UPDATE, 0, 0, all, sizeof all);
    n_opened = 0;
    memset(is_active, 0, sizeof is_active), memset(is_submitted, 0, sizeof is_submitted);
}

static int field_of(const char *line, uint8_t *field) { /* the text of a Priority field */
    const char *eps = strstr(line, "\"urgency\":");
    int urgency = eps ? atoi(eps + 10) : 3;
    return sprintf((char *)field, "u=%d%s", urgency, strstr(line, "\"incremental\":true") ? ",i" : "");
}

static void activate(long id) {
    static const nghttp2_nv status = {(uint8_t *)":status", (uint8_t *)"200", 7, 3, 0};
    static const nghttp2_data_provider provider = {{0}, read_data};
    is_active[id] = 1;
    if (is_submitted[id]) nghttp2_session_resume_data(session, wire_of[id]);
    else nghttp2_submit_response(session, wire_of[id], &status, 1, &provider);
    is_submitted[id] = 1;
}

int main(int argc, char **argv) {
    char line[1024], op[16];
    is_silent = argc > 1 && !strcmp(argv[1], "--silent");
    reset();
    while (fgets(line, sizeof line, stdin)) {
        long id = -1;
        uint8_t request[64] = "\x82\x87\x84\x41\001a\0\x08priority", bytes[64] = {0};
        sscanf(line, "{\"op\":\"%15[a-z]\",\"stream\":%ld,\"bytes\":%ld", op, &id, &size);
        if (!strcmp(op, "hello"))
            printf("{\"protocol\":\"h3sim-conformance/1\",\"name\":\"nghttp2 %s\"}\n", nghttp2_version(0)->version_str);
        else if (!strcmp(op, "reset")) reset();
        else if (!strcmp(op, "open")) {
            id_of[n_opened] = (int32_t)id, wire_of[id] = 2 * n_opened++ + 1;
            request[16] = field_of(line, request + 17);
            receive(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, wire_of[id], request, 17 + request[16]);
        } else if (!strcmp(op, "update")) {
            bytes[1] = wire_of[id] >> 16, bytes[2] = wire_of[id] >> 8, bytes[3] = wire_of[id];
            receive(NGHTTP2_PRIORITY_UPDATE, 0, 0, bytes, 4 + field_of(line, bytes + 4));
        } else if (!strcmp(op, "activate")) activate(id);
        else if (!strcmp(op, "deactivate")) is_active[id] = 0;
        else if (!strcmp(op, "charge")) {
            if (next(1) == id) next(0);
        } else if (!strcmp(op, "close")) {
            nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, wire_of[id], NGHTTP2_NO_ERROR);
            is_active[id] = 0;
        } else if (!strcmp(op, "pick")) {
            if ((id = next(1)) < 0) puts("{\"stream\":null}");
            else printf("{\"stream\":%ld}\n", id);
        }
        fflush(stdout);
        next(1); /* as a server asks after each event: HEADERS go, who has no data leaves */
    }
    nghttp2_session_del(session);
}
