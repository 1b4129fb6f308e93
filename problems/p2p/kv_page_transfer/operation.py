"""Pages of a KV cache go from prefill to decode ranks, to other places and in another layout."""
import torch
import torch.distributed as dist


def operation(table, cache, out, sums) -> None:
    """cache: [layers, pages, heads, tokens, words], out: heads and tokens exchanged; int32."""
    rank, half = dist.get_rank(), dist.get_world_size() // 2
    for layer in range(cache.shape[0]):
        if rank < half:
            dist.send(cache[layer, table].contiguous(), dst=rank + half)
        elif rank < 2 * half:
            pages = torch.empty_like(cache[layer, table])
            dist.recv(pages, src=rank - half)
            out[layer, table] = pages.transpose(1, 2)
            sums[layer] = pages.sum(dtype=torch.int64) & 0xFFFFFFFF


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    for layers, pages, used, heads, tokens, words in ((2, 6, 4, 4, 8, 16), (4, 20, 16, 4, 16, 16)):
        shape = (layers, pages, heads, tokens, words)
        cache = torch.randint(0, 2**31, shape, dtype=torch.int32, device="cuda")
        out = torch.empty_like(cache.transpose(2, 3), memory_format=torch.contiguous_format)
        table = torch.randperm(pages, device="cuda")[:used]
        operation(table, cache, out, torch.empty(layers, dtype=torch.int64, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
