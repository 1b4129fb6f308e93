"""Dispatch within groups of ranks that each hold all experts; loads are summed over all groups."""
import torch
import torch.distributed as dist


def operation(x, ids, per, members, recv_x, recv_from, count, load) -> None:
    """x: [tokens, hidden] bf16, ids: [tokens, topk]; `members`: the group's ranks, with its communicator."""
    ranks, group = members
    size, me = len(ranks), dist.get_rank()
    expert, order = ids.long().flatten().sort(stable=True)
    token = order // ids.shape[1]
    load.copy_(torch.bincount(expert, minlength=size * per))
    sent = load.view(size, per).clone()
    dist.all_reduce(load)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    to, of = sent.sum(1).tolist(), received.sum(1).tolist()
    rows = x.new_empty(sum(of), x.shape[1])
    places = torch.empty(sum(of), dtype=torch.int64, device=x.device)
    dist.all_to_all_single(rows, x[token], of, to, group=group)
    dist.all_to_all_single(places, me * x.shape[0] + token, of, to, group=group)
    count.copy_(received.t())
    owner = torch.arange(per, device=x.device).repeat(size).repeat_interleave(received.flatten())
    for e in range(per):
        mine = owner == e
        n = int(mine.sum())
        recv_x[e, :n], recv_from[e, :n] = rows[mine], places[mine].int()


def main() -> None:
    dist.init_process_group("nccl")
    torch.cuda.set_device(dist.get_rank())
    world, size, per, topk = dist.get_world_size(), 4, 4, 4
    groups = [list(range(f, f + size)) for f in range(0, world, size)]
    members = [(g, dist.new_group(g)) for g in groups][dist.get_rank() // size]
    for tokens, hidden in ((8, 256), (32, 512)):
        x = torch.randn(tokens, hidden, device="cuda", dtype=torch.bfloat16)
        ids = torch.rand(tokens, size * per, device="cuda").topk(topk).indices
        recv_x = x.new_empty(per, size * tokens, hidden)
        recv_from = torch.empty(per, size * tokens, dtype=torch.int32, device="cuda")
        count = torch.empty(per, size, dtype=torch.int64, device="cuda")
        load = torch.empty(size * per, dtype=torch.int64, device="cuda")
        operation(x, ids, per, members, recv_x, recv_from, count, load)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
