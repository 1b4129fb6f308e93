"""Dispatch of tokens into rows by expert, padded with zeros to whole tiles."""
import torch
import torch.distributed as dist


def operation(x, ids, per, tile, rows, origin, starts) -> None:
    """x: [tokens, hidden] bf16, ids: [tokens, topk] int32; rows, origin: the beginning is set; starts: [per + 1]."""
    world, rank, tokens = dist.get_world_size(), dist.get_rank(), x.shape[0]
    every = torch.empty(world * tokens, ids.shape[1], dtype=ids.dtype, device=ids.device)
    dist.all_gather_into_tensor(every, ids)
    holder = ids.long() // per
    going = [(holder == r).any(dim=1).nonzero().flatten() for r in range(world)]
    coming = [(part.long() // per == rank).any(dim=1).nonzero().flatten() for part in every.split(tokens)]
    sends, receives = [len(g) for g in going], [len(c) for c in coming]
    here = torch.empty(sum(receives), x.shape[1], dtype=x.dtype, device=x.device)
    dist.all_to_all_single(here, x[torch.cat(going)], receives, sends)
    at = torch.full((world * tokens,), -1, dtype=torch.long, device=x.device)
    at[torch.cat([s * tokens + c for s, c in enumerate(coming)])] = torch.arange(sum(receives), device=x.device)
    row = 0
    starts[0] = 0
    for e in range(per):
        listed = (every == rank * per + e).any(dim=1).nonzero().flatten()
        end = row + len(listed)
        padded = row + -(-len(listed) // tile) * tile
        rows[row:end], rows[end:padded] = here[at[listed]], 0
        origin[row:end], origin[end:padded] = listed.to(torch.int32), -1
        starts[e + 1] = row = padded


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, per = dist.get_world_size(), 2
    for tokens, hidden, topk, tile in ((8, 256, 2, 16), (32, 1024, 4, 32)):
        x = torch.randn(tokens, hidden, dtype=torch.bfloat16, device="cuda")
        ids = torch.rand(tokens, world * per, device="cuda").topk(topk).indices.to(torch.int32)
        most = world * tokens * min(topk, per) + per * (tile - 1)
        rows = torch.empty(most, hidden, dtype=x.dtype, device="cuda")
        origin = torch.empty(most, dtype=torch.int32, device="cuda")
        operation(x, ids, per, tile, rows, origin, torch.empty(per + 1, dtype=torch.int32, device="cuda"))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
