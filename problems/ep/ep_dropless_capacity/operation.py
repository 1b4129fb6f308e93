"""Dispatch to experts with limited room; all ranks find the same overflow, by source rank and token."""
import torch
import torch.distributed as dist


def operation(x, ids, room, recv_x, recv_from, fits, slots) -> None:
    """x: [tokens, hidden] bf16, ids: [tokens, topk], room: [per]; recv_x: [per, most, hidden]."""
    world, rank, per, tokens = dist.get_world_size(), dist.get_rank(), len(room), len(x)
    everyone = ids.new_empty(world * tokens, ids.shape[1])
    dist.all_gather_into_tensor(everyone, ids)
    rooms = room.new_empty(world * per)
    dist.all_gather_into_tensor(rooms, room)
    asks = torch.nn.functional.one_hot(everyone.long(), world * per).sum(1)  # [items, experts]
    place = asks.cumsum(0) - asks
    served = (asks > 0) & (place < rooms)
    bits = 1 << torch.arange(world * per, device=x.device)
    fits.copy_((served * bits).sum(1).view(world, tokens))
    own = slice(rank * tokens, (rank + 1) * tokens)
    mine = torch.where(served[own], place[own], -1)
    slots.copy_(mine.gather(1, ids.long()))
    # Rows go once to every rank where they fit.
    holders = served.view(world, tokens, world, per).any(3)  # [source, token, holder]
    sends = [x[holders[rank, :, d]] for d in range(world)]
    rows = [x.new_empty(int(holders[s, :, rank].sum()), x.shape[1]) for s in range(world)]
    dist.all_to_all(rows, sends)
    item = holders[:, :, rank].flatten().nonzero().squeeze(1)
    for e in range(per):
        used = served[item, rank * per + e]
        n = int(used.sum())
        recv_x[e, :n], recv_from[e, :n] = torch.cat(rows)[used], item[used].int()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, per, topk = dist.get_world_size(), 4, 2
    for tokens, hidden, most in ((8, 256, 8), (24, 512, 24)):
        x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
        ids = torch.rand(tokens, world * per, device="cuda").topk(topk).indices
        room = torch.randint(0, most + 1, (per,), device="cuda")
        recv_x = x.new_empty(per, most, hidden)
        recv_from = torch.empty(per, most, dtype=torch.int32, device="cuda")
        fits = torch.empty(world, tokens, dtype=torch.int64, device="cuda")
        operation(x, ids, room, recv_x, recv_from, fits, torch.empty_like(ids))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
