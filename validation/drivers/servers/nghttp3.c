/* Driver of nghttp3's scheduler: a server's connection, which reads requests with a Priority field
   and PRIORITY_UPDATE frames. Needs libnghttp3-dev. With --retry, a stream that is picked though it
   is blocked is blocked again, as applications do once their transport refuses its bytes. */
#include <nghttp3/nghttp3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX 8192
static struct stream { long id; int is_submitted, is_active; } streams[MAX];
static int n_streams, retries;
static nghttp3_conn *conn;
static uint8_t body[1 << 30]; /* never read: only lengths matter */

static struct stream *find(long id) {
    for (int i = 0; i < n_streams; i++)
        if (streams[i].id == id) return &streams[i];
    return NULL;
}

static nghttp3_ssize read_data(nghttp3_conn *c, int64_t id, nghttp3_vec *vec, size_t n,
                               uint32_t *flags, void *user, void *of_stream) {
    (void)c, (void)id, (void)n, (void)flags, (void)user, (void)of_stream;
    vec[0] = (nghttp3_vec){body, sizeof body};
    return 1;
}

static void receive(int64_t stream, const uint8_t *bytes, size_t n, int fin) {
    nghttp3_ssize got = nghttp3_conn_read_stream(conn, stream, bytes, n, fin);
    if (got < 0) fprintf(stderr, "%s\n", nghttp3_strerror((int)got)), exit(1);
}

static uint8_t *varint(uint8_t *to, uint64_t value, int n_bytes) { /* RFC 9000 section 16 */
    for (int i = n_bytes - 1; i >= 0; i--, value >>= 8) to[i] = (uint8_t)value;
    *to |= n_bytes == 8 ? 0xc0 : n_bytes == 4 ? 0x80 : 0;
    return to + n_bytes;
}

static void reset(void) {
    static const uint8_t control[] = {0x00, 0x04, 0x00}; /* the stream's type, empty SETTINGS */
    nghttp3_callbacks callbacks = {0};
    nghttp3_settings settings;
    if (conn) nghttp3_conn_del(conn);
    nghttp3_settings_default(&settings);
    nghttp3_conn_server_new(&conn, &callbacks, &settings, nghttp3_mem_default(), NULL);
    nghttp3_conn_set_max_client_streams_bidi(conn, 1 << 28);
    nghttp3_conn_bind_control_stream(conn, 3);
    nghttp3_conn_bind_qpack_streams(conn, 7, 11);
    receive(2, control, sizeof control, 0);
    n_streams = 0;
}

static int field_of(const char *line, char *field) { /* the text of a Priority field */
    const char *eps = strstr(line, "\"urgency\":");
    int urgency = eps ? atoi(eps + 10) : 3;
    return sprintf(field, "u=%d%s", urgency, strstr(line, "\"incremental\":true") ? ",i" : "");
}

static void open_stream(long id, const char *line) {
    /* GET https://a/ by QPACK's static table, then a literal field "priority". */
    static const uint8_t request[] = "\0\0\xd1\xd7\xc1\x50\001a\x27\001priority";
    uint8_t bytes[64], *end = bytes + 2;
    char field[16];
    int n = field_of(line, field);
    end = (uint8_t *)memcpy(end, request, sizeof request - 1) + sizeof request - 1;
    *end++ = (uint8_t)n;
    end = (uint8_t *)memcpy(end, field, n) + n;
    bytes[0] = 0x01, bytes[1] = (uint8_t)(end - bytes - 2);
    receive(id, bytes, end - bytes, 1);
    if (n_streams < MAX) streams[n_streams++] = (struct stream){.id = id};
}

static void update(long id, const char *line) {
    uint8_t bytes[64], *end;
    char field[16];
    int n = field_of(line, field);
    end = varint(bytes, 0xf0700, 4), end = varint(end, n + 8, 1), end = varint(end, id, 8);
    end = (uint8_t *)memcpy(end, field, n) + n;
    receive(2, bytes, end - bytes, 0);
}

static void activate(long id) {
    static const nghttp3_nv status = {(uint8_t *)":status", (uint8_t *)"200", 7, 3, 0};
    static const nghttp3_data_reader reader = {read_data};
    struct stream *s = find(id);
    s->is_active = 1;
    if (!s->is_submitted) nghttp3_conn_submit_response(conn, id, &status, 1, &reader);
    s->is_submitted = 1;
    nghttp3_conn_unblock_stream(conn, id);
}

static long pick(void) {
    for (;;) {
        int64_t id;
        int fin;
        nghttp3_vec vec[8];
        nghttp3_ssize n = nghttp3_conn_writev_stream(conn, &id, &fin, vec, 8);
        if (n < 0) fprintf(stderr, "%s\n", nghttp3_strerror((int)n)), exit(1);
        if (retries && id >= 0 && id % 4 == 0 && !find(id)->is_active) {
            nghttp3_conn_block_stream(conn, id);
            continue;
        }
        if (id < 0 || id % 4 == 0) return (long)id;
        nghttp3_conn_add_write_offset(conn, id, nghttp3_vec_len(vec, n)); /* control, QPACK */
    }
}

int main(int argc, char **argv) {
    char line[1024], op[16];
    retries = argc > 1 && !strcmp(argv[1], "--retry");
    reset();
    while (fgets(line, sizeof line, stdin)) {
        long id = -1, n_bytes = 0;
        sscanf(line, "{\"op\":\"%15[a-z]\",\"stream\":%ld,\"bytes\":%ld", op, &id, &n_bytes);
        if (!strcmp(op, "hello"))
            printf("{\"protocol\":\"h3sim-conformance/1\",\"name\":\"nghttp3 %s\"}\n", nghttp3_version(0)->version_str);
        else if (!strcmp(op, "reset")) reset();
        else if (!strcmp(op, "open")) open_stream(id, line);
        else if (!strcmp(op, "update")) update(id, line);
        else if (!strcmp(op, "activate")) activate(id);
        else if (!strcmp(op, "deactivate")) nghttp3_conn_block_stream(conn, id), find(id)->is_active = 0;
        else if (!strcmp(op, "charge")) {
            /* Of another stream it is a retransmission, which is the transport's. */
            if (pick() == id) nghttp3_conn_add_write_offset(conn, id, n_bytes);
        } else if (!strcmp(op, "close")) {
            nghttp3_conn_close_stream(conn, id, NGHTTP3_H3_NO_ERROR);
            *find(id) = streams[n_streams - 1];
            n_streams--;
        } else if (!strcmp(op, "pick")) {
            if ((id = pick()) < 0) puts("{\"stream\":null}");
            else printf("{\"stream\":%ld}\n", id);
        }
        fflush(stdout);
    }
    nghttp3_conn_del(conn);
}
